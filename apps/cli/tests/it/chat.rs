//! `turnwire chat`.

mod approval;
mod conversation;
mod cut;
mod editor;
mod line;
mod lost;
mod workshop;
