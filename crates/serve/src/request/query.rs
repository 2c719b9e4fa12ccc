//! Query parameters, parsed strictly: each once, none unknown, numbers within bounds, valid cursors.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use turnwire_event::UtcDay;
use turnwire_wire::problem::Code;

use crate::error::RequestFault;
use crate::state::AppState;

/// The parameters of a request that are not taken yet; [`QueryParams::done`] refuses the rest.
#[derive(Debug)]
pub struct QueryParams(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for QueryParams {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, RequestFault> {
        Self::read(&parts.uri)
    }
}

impl QueryParams {
    fn read(uri: &Uri) -> Result<Self, RequestFault> {
        Query::try_from_uri(uri)
            .map(|Query(pairs)| Self(pairs))
            .map_err(|_| RequestFault::new(Code::InvalidRequest, "The query cannot be read."))
    }

    /// Takes the parameter called `name`.
    pub fn take(&mut self, name: &str) -> Result<Option<String>, RequestFault> {
        let mut value = None;
        while let Some(at) = self.0.iter().position(|(known, _)| known == name) {
            if value.replace(self.0.swap_remove(at).1).is_some() {
                return Err(RequestFault::invalid(name, "may occur once"));
            }
        }
        Ok(value)
    }

    /// Takes `limit`, the page size.
    pub fn limit(&mut self, default: usize, max: usize) -> Result<usize, RequestFault> {
        let Some(text) = self.take("limit")? else {
            return Ok(default);
        };
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let limit = digits.then(|| text.parse().ok()).flatten();
        limit
            .filter(|limit| (1..=max).contains(limit))
            .ok_or_else(|| {
                RequestFault::invalid("limit", format!("must be a whole number from 1 to {max}"))
            })
    }

    /// Takes the cursor called `name`.
    pub fn cursor<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, RequestFault> {
        let text = self.take(name)?;
        text.map(|text| text.parse()).transpose().map_err(|_| {
            let detail = format!("{name} is not a cursor that this server has given.");
            RequestFault::new(Code::InvalidCursor, detail).with("field", name)
        })
    }

    /// Takes the day called `name`.
    pub fn day(&mut self, name: &str) -> Result<Option<UtcDay>, RequestFault> {
        let text = self.take(name)?;
        let day = text.map(|text| text.parse()).transpose();
        day.map_err(|_| {
            RequestFault::invalid(name, "must be a day of the calendar, as in 2026-01-31")
        })
    }

    /// The [`ListPage`] of a list that has no other parameters.
    pub fn page<T: FromStr>(
        mut self,
        default: usize,
        max: usize,
    ) -> Result<ListPage<T>, RequestFault> {
        let limit = self.limit(default, max)?;
        let before = self.cursor("before")?;
        self.done()?;
        Ok(ListPage { limit, before })
    }

    /// Takes the switch called `name`; off if absent.
    pub fn flag(&mut self, name: &str) -> Result<bool, RequestFault> {
        match self.take(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(RequestFault::invalid(name, "must be true or false")),
        }
    }

    /// Refuses parameters that were not taken.
    pub fn done(self) -> Result<(), RequestFault> {
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

/// The page of a list that a request asks for: at most `limit` items, those before `before`.
#[derive(Debug)]
pub struct ListPage<T> {
    /// The largest number of items that the response may have.
    pub limit: usize,
    /// The cursor: the `next` of the previous page.
    pub before: Option<T>,
}

impl<T: FromStr> FromRequestParts<AppState> for ListPage<T> {
    type Rejection = RequestFault;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, RequestFault> {
        let sizes = &state.config.session;
        QueryParams::read(&parts.uri)?.page(sizes.list_page, sizes.list_page_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnwire_event::{Epoch, Position, Seq};

    fn params(query: &str) -> QueryParams {
        let uri: Uri = format!("/x?{query}").parse().expect("a uri");
        QueryParams::read(&uri).expect("pairs")
    }

    #[test]
    fn each_parameter_is_read_once_and_extras_are_named() {
        let mut all = params("limit=7&since=evt_00010000000002&hashes=true&types=a%2Cb");
        assert_eq!(all.limit(50, 200), Ok(7));
        let since = Position::persisted(Epoch(1), Seq(2));
        assert_eq!(all.cursor("since"), Ok(Some(since)));
        assert_eq!(all.flag("hashes"), Ok(true));
        assert_eq!(all.take("types"), Ok(Some("a,b".into())));
        assert_eq!(all.done(), Ok(()));

        let unknown = params("limt=7").done().expect_err("unknown");
        let expected = RequestFault::new(
            Code::UnknownField,
            "There is no query parameter \"limt\" here.",
        );
        assert_eq!(unknown, expected.with("field", "limt"));
        let twice = params("limit=1&limit=2").limit(50, 200);
        assert_eq!(twice, Err(RequestFault::invalid("limit", "may occur once")));
    }

    // S3-008
    #[test]
    fn limits_have_bounds() {
        assert_eq!(params("").limit(50, 200), Ok(50));
        assert_eq!(params("limit=1").limit(50, 200), Ok(1));
        assert_eq!(params("limit=200").limit(50, 200), Ok(200));
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
            let fault = params(&format!("limit={bad}")).limit(50, 200);
            let what = "must be a whole number from 1 to 200";
            assert_eq!(fault, Err(RequestFault::invalid("limit", what)), "{bad}");
        }
    }

    #[test]
    fn invalid_cursor_differs_from_invalid_value() {
        for bad in ["", "x", "evt_1"] {
            let fault = params(&format!("since={bad}")).cursor::<Position>("since");
            let code = fault.expect_err("no cursor").code();
            assert_eq!(code, Code::InvalidCursor, "{bad}");
        }
        let fault = params("hashes=1").flag("hashes").expect_err("no flag");
        assert_eq!(fault.code(), Code::InvalidRequest);
    }
}
