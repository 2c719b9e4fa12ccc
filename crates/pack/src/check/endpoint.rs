//! Checks of what goes out of the process: addresses, headers, commands and environments, with
//! the variables in them filled in.

pub(crate) mod url;
pub(crate) mod key;
pub(crate) mod header;
pub(crate) mod expansion;
pub(crate) mod tool_url;
