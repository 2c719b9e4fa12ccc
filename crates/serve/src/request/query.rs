//! Query parameters, parsed strictly: a repeated parameter, an unknown parameter, a number out of
//! bounds and an invalid cursor are refused.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use serde::Serialize;
use turnwire_event::UtcDay;
use turnwire_session::PageBounds;
use turnwire_wire::budget::cut_to_fit;
use turnwire_wire::problem::Code;

use crate::error::RequestFault;
use crate::state::AppState;

/// The query parameters of a request that the handler has not read yet: each `take` method removes
/// one, then [`QueryParams::refuse_rest`] refuses unknown ones.
#[derive(Debug)]
pub struct QueryParams(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for QueryParams {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestFault> {
        Self::from_uri(&parts.uri)
    }
}

impl QueryParams {
    fn from_uri(uri: &Uri) -> Result<Self, RequestFault> {
        Query::try_from_uri(uri)
            .map(|Query(pairs)| Self(pairs))
            .map_err(|_| RequestFault::new(Code::InvalidRequest, "The query cannot be read."))
    }

    /// Removes the parameter `name` and returns its value; `None` if absent, an error if repeated.
    pub fn take(&mut self, name: &str) -> Result<Option<String>, RequestFault> {
        let mut value = None;
        while let Some(at) = self.0.iter().position(|(key, _)| key == name) {
            if value.replace(self.0.swap_remove(at).1).is_some() {
                return Err(RequestFault::invalid(name, "may occur once"));
            }
        }
        Ok(value)
    }

    /// Takes the parameter `limit`, the page size: from 1 to `max`, `default` if absent.
    pub fn take_limit(&mut self, default: usize, max: usize) -> Result<usize, RequestFault> {
        let Some(text) = self.take("limit")? else {
            return Ok(default);
        };
        let is_number = text.bytes().all(|b| b.is_ascii_digit());
        let limit = is_number.then(|| text.parse().ok()).flatten();
        limit
            .filter(|limit| (1..=max).contains(limit))
            .ok_or_else(|| {
                RequestFault::invalid("limit", format!("must be a whole number from 1 to {max}"))
            })
    }

    /// Takes the parameter `name` as a cursor from an earlier response.
    pub fn take_cursor<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, RequestFault> {
        let text = self.take(name)?;
        text.map(|text| text.parse()).transpose().map_err(|_| {
            let detail = format!("{name} is not a cursor that this server has given.");
            RequestFault::new(Code::InvalidCursor, detail).with("field", name)
        })
    }

    /// Takes the parameter `name` as a value whose text follows `rule`.
    pub fn take_parsed<T: FromStr>(
        &mut self,
        name: &'static str,
        rule: &'static str,
    ) -> Result<Option<T>, RequestFault> {
        let text = self.take(name)?;
        let value = text.map(|text| text.parse()).transpose();
        value.map_err(|_| RequestFault::invalid(name, rule))
    }

    /// Takes the parameter `name` as a day.
    pub fn take_day(&mut self, name: &str) -> Result<Option<UtcDay>, RequestFault> {
        let text = self.take(name)?;
        let day = text.map(|text| text.parse()).transpose();
        day.map_err(|_| {
            RequestFault::invalid(name, "must be a day of the calendar, as in 2026-01-31")
        })
    }

    /// The [`ListPage`] from `limit` and `before`; other parameters are refused.
    pub fn into_page<T: FromStr>(
        mut self,
        (default, max): (usize, usize),
        bytes_max: usize,
    ) -> Result<ListPage<T>, RequestFault> {
        let rows = self.take_limit(default, max)?;
        let before = self.take_cursor("before")?;
        self.refuse_rest()?;
        let bytes = bytes_max;
        let bounds = PageBounds { rows, bytes };
        Ok(ListPage { before, bounds })
    }

    /// Takes the parameter `name` as a boolean; false if absent.
    pub fn take_flag(&mut self, name: &str) -> Result<bool, RequestFault> {
        match self.take(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(RequestFault::invalid(name, "must be true or false")),
        }
    }

    /// Refuses the request if parameters are left that no method has taken.
    pub fn refuse_rest(self) -> Result<(), RequestFault> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => {
                let name: String = name.chars().take(64).collect();
                let detail = format!("There is no query parameter {name:?} here.");
                Err(RequestFault::new(Code::UnknownField, detail).with("field", name))
            }
        }
    }
}

/// The page of a list that a request asks for: the items before the cursor `before` that are within
/// `bounds`.
#[derive(Debug)]
pub struct ListPage<T> {
    /// The cursor: the `next` of the previous page.
    pub before: Option<T>,
    /// The most items and bytes in the response.
    pub bounds: PageBounds,
}

impl<T> ListPage<T> {
    /// The items of the response and its `next`: those `rows` that fit as JSON, and the cursor of
    /// the last one if there are more.
    pub fn fit<R, I: From<R> + Serialize>(
        &self,
        (rows, next): (Vec<R>, Option<T>),
        key: impl Fn(&I) -> T,
    ) -> (Vec<I>, Option<T>) {
        let mut items: Vec<I> = rows.into_iter().map(Into::into).collect();
        let is_cut = cut_to_fit(&mut items, self.bounds.bytes);
        let next = if is_cut { items.last().map(key) } else { next };
        (items, next)
    }
}

impl<T: FromStr> FromRequestParts<AppState> for ListPage<T> {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, RequestFault> {
        let sizes = &state.config.session;
        let limits = (sizes.list_page, sizes.list_page_max);
        QueryParams::from_uri(&parts.uri)?.into_page(limits, state.config.http.answer_max_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::{Epoch, Position, Seq};

    fn params(query: &str) -> QueryParams {
        let uri: Uri = format!("/x?{query}").parse().expect("a uri");
        QueryParams::from_uri(&uri).expect("pairs")
    }

    #[test]
    fn each_parameter_is_read_once_and_extras_are_named() {
        let mut query = params("limit=7&since=evt_00010000000002&hashes=true&types=a%2Cb");
        assert_eq!(query.take_limit(50, 200), Ok(7));
        let since = Position::persisted(Epoch(1), Seq(2));
        assert_eq!(query.take_cursor("since"), Ok(Some(since)));
        assert_eq!(query.take_flag("hashes"), Ok(true));
        assert_eq!(query.take("types"), Ok(Some("a,b".into())));
        assert_eq!(query.refuse_rest(), Ok(()));

        let unknown = params("limt=7").refuse_rest().expect_err("unknown");
        let expected = RequestFault::new(
            Code::UnknownField,
            "There is no query parameter \"limt\" here.",
        );
        assert_eq!(unknown, expected.with("field", "limt"));
        let twice = params("limit=1&limit=2").take_limit(50, 200);
        assert_eq!(twice, Err(RequestFault::invalid("limit", "may occur once")));
    }

    // S3-008
    #[test]
    fn limits_have_bounds() {
        assert_eq!(params("").take_limit(50, 200), Ok(50));
        assert_eq!(params("limit=1").take_limit(50, 200), Ok(1));
        assert_eq!(params("limit=200").take_limit(50, 200), Ok(200));
        for bad in [
            "",
            "0",
            "201",
            "-1",
            "x",
            "1.5",
            "+5",
            "99999999999999999999",
        ] {
            let fault = params(&format!("limit={bad}")).take_limit(50, 200);
            let reason = "must be a whole number from 1 to 200";
            assert_eq!(fault, Err(RequestFault::invalid("limit", reason)), "{bad}");
        }
    }

    #[test]
    fn invalid_cursor_differs_from_invalid_value() {
        for bad in ["", "x", "evt_1"] {
            let fault = params(&format!("since={bad}")).take_cursor::<Position>("since");
            let code = fault.expect_err("no cursor").code();
            assert_eq!(code, Code::InvalidCursor, "{bad}");
        }
        let fault = params("hashes=1").take_flag("hashes").expect_err("no flag");
        assert_eq!(fault.code(), Code::InvalidRequest);
    }
}
