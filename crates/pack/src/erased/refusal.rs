//! Errors on their way through trait objects.

use std::fmt::{self, Display};

use serde::de::{self, Expected, Unexpected};

/// Why a value was not taken.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The error is kept, in its own type, by the adapter that met it.
    Kept,
    Custom(String),
    InvalidType(String, String),
    InvalidValue(String, String),
    InvalidLength(usize, String),
    UnknownVariant(String, &'static [&'static str]),
    UnknownField(String, &'static [&'static str]),
    MissingField(&'static str),
    DuplicateField(&'static str),
}

impl Refusal {
    /// The error again, in another type.
    pub(crate) fn into_error<E: de::Error>(self) -> E {
        match self {
            Self::Kept => E::custom("an error was lost"),
            Self::Custom(message) => E::custom(message),
            Self::InvalidType(found, wanted) => {
                E::invalid_type(Unexpected::Other(&found), &wanted.as_str())
            }
            Self::InvalidValue(found, wanted) => {
                E::invalid_value(Unexpected::Other(&found), &wanted.as_str())
            }
            Self::InvalidLength(length, wanted) => E::invalid_length(length, &wanted.as_str()),
            Self::UnknownVariant(variant, allowed) => E::unknown_variant(&variant, allowed),
            Self::UnknownField(field, allowed) => E::unknown_field(&field, allowed),
            Self::MissingField(field) => E::missing_field(field),
            Self::DuplicateField(field) => E::duplicate_field(field),
        }
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As serde words them, for a visitor that writes one error into another.
        match self {
            Self::Kept => f.write_str("a value cannot be read"),
            Self::Custom(message) => f.write_str(message),
            Self::InvalidType(found, wanted) => {
                write!(f, "invalid type: {found}, expected {wanted}")
            }
            Self::InvalidValue(found, wanted) => {
                write!(f, "invalid value: {found}, expected {wanted}")
            }
            Self::InvalidLength(length, wanted) => {
                write!(f, "invalid length {length}, expected {wanted}")
            }
            Self::UnknownVariant(variant, _) => write!(f, "unknown variant `{variant}`"),
            Self::UnknownField(field, _) => write!(f, "unknown field `{field}`"),
            Self::MissingField(field) => write!(f, "missing field `{field}`"),
            Self::DuplicateField(field) => write!(f, "duplicate field `{field}`"),
        }
    }
}

impl std::error::Error for Refusal {}

impl de::Error for Refusal {
    fn custom<T: Display>(message: T) -> Self {
        Self::Custom(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::InvalidType(found.to_string(), wanted.to_string())
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::InvalidValue(found.to_string(), wanted.to_string())
    }

    fn invalid_length(length: usize, wanted: &dyn Expected) -> Self {
        Self::InvalidLength(length, wanted.to_string())
    }

    fn unknown_variant(variant: &str, allowed: &'static [&'static str]) -> Self {
        Self::UnknownVariant(variant.to_owned(), allowed)
    }

    fn unknown_field(field: &str, allowed: &'static [&'static str]) -> Self {
        Self::UnknownField(field.to_owned(), allowed)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::MissingField(field)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::DuplicateField(field)
    }
}
