//! Headers that may be said once. A header said twice is how two readers of one request come to
//! disagree about it, so it is never a matter of taking the first.

use axum::http::HeaderMap;
use axum::http::header::AsHeaderName;

/// A header that is said twice, or is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unclear;

/// The one value of a header, if it is there.
pub(crate) fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Result<Option<&str>, Unclear> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| Unclear),
        (Some(_), Some(_)) => Err(Unclear),
    }
}
