//! Checks of what people read: status ids, their texts, and how some people see them otherwise.

pub(crate) mod status;
pub(crate) mod overrides;
pub(crate) mod locale;
