//! `turnwire chat`.

mod approval;
mod conversation;
mod cut;
mod line;
mod lost;
mod workshop;
