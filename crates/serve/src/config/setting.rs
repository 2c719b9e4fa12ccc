//! How one setting is declared, read and refused: its origin, its value, its section, and the file it
//! may stand in.

pub mod network;
pub mod origin;
pub mod site;
pub(super) mod value;
pub(super) mod section;
pub(super) mod file;

pub(super) use section::section;
pub(super) use value::{
    choice, host_names, key_location, list, non_empty, number, optional_micro_usd, optional_number,
    optional_path, optional_tenant, optional_text, scopes, socket_address, texts,
};
