//! Conversions between values and columns, and the query helpers that every table shares.

use rusqlite::types::{FromSql, Type, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
pub(crate) use turnwire_event::code::code_name;
use turnwire_event::{Owner, Seq, SessionId, Timestamp};

use crate::chain::ChainHash;
use crate::records::{PageBounds, RowPage};

/// The column text of a value stored as JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

/// Reads a column with the type's `FromStr`.
pub(crate) fn parsed<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|_| unreadable(column))
}

/// Reads a column written by [`code_name`] or [`json`].
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

/// Reads a column of counts; a negative one is read as 0.
pub(crate) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column)
        .map(|count| u64::try_from(count).unwrap_or(0))
}

/// Reads a column of sequence numbers.
pub(crate) fn seq(row: &Row<'_>, column: usize) -> rusqlite::Result<Seq> {
    row.get::<_, i64>(column).map(|seq| Seq(seq as u64))
}

/// Reads a column of hashes; see [`ChainHash::from_column`].
pub(crate) fn hash(row: &Row<'_>, column: usize) -> rusqlite::Result<ChainHash> {
    Ok(ChainHash::from_column(row.get_ref(column)?.as_blob()?))
}

/// Runs a statement that returns no rows, and returns how many rows it changed.
pub(crate) fn execute(c: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<usize> {
    c.prepare_cached(sql)?.execute(values)
}

/// Reads the first column of the only row of a query, such as a count.
pub(crate) fn query_value<T: FromSql>(
    c: &Connection,
    sql: &str,
    values: impl Params,
) -> rusqlite::Result<T> {
    c.prepare_cached(sql)?.query_row(values, |row| row.get(0))
}

/// A value that is read from one row of a query.
pub(crate) trait SelectRow: Sized {
    /// The columns and tables of the query, up to its `WHERE`.
    const SELECT: &'static str;

    /// Reads the columns of [`SELECT`](Self::SELECT).
    fn read(row: &Row<'_>) -> rusqlite::Result<Self>;

    /// Returns every row that `condition` selects, which follows [`SELECT`](Self::SELECT).
    fn all(c: &Connection, condition: &str, values: impl Params) -> rusqlite::Result<Vec<Self>> {
        let mut statement = c.prepare_cached(&format!("{} {condition}", Self::SELECT))?;
        statement.query_map(values, Self::read)?.collect()
    }

    /// As [`all`](Self::all), for a `condition` that selects at most one row.
    fn one(c: &Connection, condition: &str, values: impl Params) -> rusqlite::Result<Option<Self>> {
        let mut statement = c.prepare_cached(&format!("{} {condition}", Self::SELECT))?;
        statement.query_row(values, Self::read).optional()
    }

    /// Returns the newest rows within `bounds` whose `id` column is below `before` and whose `of`
    /// column is `parent`.
    fn page(
        c: &Connection,
        (of, parent): (&str, SessionId),
        (id, before): (&str, Option<impl ToString>),
        bounds: PageBounds,
    ) -> rusqlite::Result<RowPage<Self>> {
        let select = Self::SELECT;
        let sql = format!("{select} WHERE {of} = ?1 AND {id} < ?2 ORDER BY {id} DESC LIMIT ?3");
        let values = params![parent.to_string(), cursor(before), bounds.query_limit()];
        let weighed = |row: &Row<'_>| Ok((column_bytes(row)?, Self::read(row)?));
        bounded(c, &sql, values, bounds, weighed)
    }
}

/// Steps through the rows of a query until `bounds` are used up; `read` returns the weight of a row
/// in bytes, and the row. Rows behind the page are not read, except the one that does not fit.
pub(crate) fn bounded<T>(
    c: &Connection,
    sql: &str,
    values: impl Params,
    bounds: PageBounds,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<(usize, T)>,
) -> rusqlite::Result<RowPage<T>> {
    let mut statement = c.prepare_cached(sql)?;
    let mut stepped = statement.query(values)?;
    let (mut rows, mut bytes) = (Vec::new(), 0_usize);
    while let Some(row) = stepped.next()? {
        let has_more = true;
        if rows.len() >= bounds.rows {
            return Ok(RowPage { rows, has_more });
        }
        let (weight, row) = read(row)?;
        bytes = bytes.saturating_add(weight);
        if bytes > bounds.bytes && !rows.is_empty() {
            return Ok(RowPage { rows, has_more });
        }
        rows.push(row);
    }
    let has_more = false;
    Ok(RowPage { rows, has_more })
}

/// The bytes of texts and blobs in the columns of a row.
pub(crate) fn column_bytes(row: &Row<'_>) -> rusqlite::Result<usize> {
    let mut bytes = 0;
    for column in 0..row.as_ref().column_count() {
        bytes += match row.get_ref(column)? {
            ValueRef::Text(data) | ValueRef::Blob(data) => data.len(),
            ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 0,
        };
    }
    Ok(bytes)
}

/// Text that sorts after every id and every position: the cursor of the first page.
pub(crate) const NEWEST: &str = "~";

/// The bound of a page that ends before an id.
pub(crate) fn cursor<T: ToString>(before: Option<T>) -> String {
    before.map_or_else(|| NEWEST.to_owned(), |id| id.to_string())
}
