//! Tests of the providers and of the scripted model, in one binary.

mod told;

mod chat;
mod market;
mod more;
mod replay;
