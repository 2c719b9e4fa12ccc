//! Conversions between values and columns, and the query helpers that every table shares.

use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Params, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;
use turnwire_event::{Owner, Timestamp};

use crate::error::ReadError;

/// The column text of a value whose JSON is a plain string, such as a state or a role.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

/// The column text of a value stored as JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

/// Reads a column with the type's `FromStr`.
pub(crate) fn parsed<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|_| unreadable(column))
}

/// Reads a column written by [`word`] or [`json`].
pub(crate) fn value<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text)
        .or_else(|_| serde_json::from_value(serde_json::Value::String(text)))
        .map_err(|_| unreadable(column))
}

/// As [`value`], for a column that may be NULL.
pub(crate) fn optional<T: DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<T>> {
    if row.get_ref(column)? == ValueRef::Null {
        Ok(None)
    } else {
        value(row, column).map(Some)
    }
}

/// The error of a column whose text does not parse.
pub(crate) fn unreadable(column: usize) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, "unreadable".into(), Type::Text)
}

/// Reads a column of milliseconds.
pub(crate) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    row.get(column).map(Timestamp::from_millis)
}

/// As [`time`], for a column that may be NULL.
pub(crate) fn optional_time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row
        .get::<_, Option<i64>>(column)?
        .map(Timestamp::from_millis))
}

/// Reads a column of ids that may be NULL; text that does not parse is read as NULL.
pub(crate) fn optional_id<T: std::str::FromStr>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

/// Reads a tenant and the principal in the column after it.
pub(crate) fn owner(row: &Row<'_>, column: usize) -> rusqlite::Result<Owner> {
    Ok(Owner {
        tenant: parsed(row, column)?,
        principal: parsed(row, column + 1)?,
    })
}

/// Runs a query and reads every row.
pub(crate) fn query_rows<T>(
    c: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, ReadError> {
    let mut statement = c.prepare_cached(sql)?;
    let rows = statement.query_map(values, read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Text that sorts after every id and every position: the cursor of the first page.
pub(crate) const NEWEST: &str = "~";

/// The bound of a page that ends before an id.
pub(crate) fn cursor<T: ToString>(before: Option<T>) -> String {
    before.map_or_else(|| NEWEST.to_owned(), |id| id.to_string())
}
