//! `turnwire chat`.

mod conversation;
mod cut;
mod line;
mod lost;
mod workshop;
