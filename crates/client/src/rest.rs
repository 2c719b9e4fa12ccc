//! JSON requests over [`HttpConnections`], and how a response becomes a value or an [`Error`].

use std::fmt::Display;

use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::http::{HttpConnections, RestResponse};
use crate::key::SubmitKey;

impl HttpConnections {
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.exchange(Method::GET, path, None, None).await?.json()
    }

    pub(crate) async fn get_text(&self, path: &str) -> Result<String> {
        let response = self.exchange(Method::GET, path, None, None).await?;
        response.check_status()?;
        Ok(String::from_utf8_lossy(&response.body).into_owned())
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<()> {
        let response = self.exchange(Method::DELETE, path, None, None).await?;
        response.check_status()
    }

    /// Posts `body` as JSON, with an idempotency key if the request has one.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: &impl Serialize,
        key: Option<&SubmitKey>,
    ) -> Result<RestResponse> {
        let body = serde_json::to_vec(body).expect("request bodies are plain data");
        self.exchange(Method::POST, path, Some(body), key).await
    }
}

impl RestResponse {
    /// The body of a successful response.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T> {
        self.check_status()?;
        Ok(serde_json::from_slice(&self.body)?)
    }

    fn check_status(&self) -> Result<()> {
        match self.status.is_success() {
            true => Ok(()),
            false => Err(self.error()),
        }
    }

    /// The [`Error::Problem`] of the body, or [`Error::Status`] if the body has none.
    pub(crate) fn error(&self) -> Error {
        let status = self.status.as_u16();
        let Ok(mut fields) = serde_json::from_slice::<Map<String, Value>>(&self.body) else {
            return Error::Status(status);
        };
        // All members of a problem are optional in RFC 9457.
        for name in ["type", "title", "detail", "code", "trace_id"] {
            fields.entry(name).or_insert_with(|| json!(""));
        }
        fields.insert("status".to_owned(), json!(status));
        let problem = serde_json::from_value(Value::Object(fields));
        problem.map_or(Error::Status(status), Error::Problem)
    }
}

/// The path of a page of a list.
pub(crate) fn page_path(path: &str, before: Option<impl Display>, limit: Option<usize>) -> String {
    let before = before.map(|before| before.to_string());
    let limit = limit.map(|limit| limit.to_string());
    with_query(path, [("before", before), ("limit", limit)])
}

/// `path` with the query parameters that have a value.
pub(crate) fn with_query<const N: usize>(
    path: &str,
    parameters: [(&str, Option<String>); N],
) -> String {
    let parameter = |(name, value): (_, Option<String>)| Some(format!("{name}={}", value?));
    let query: Vec<String> = parameters.into_iter().filter_map(parameter).collect();
    match query.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", query.join("&")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::StatusCode;
    use turnwire_wire::problem::Code;

    fn response(status: u16, body: &'static str) -> RestResponse {
        RestResponse {
            status: StatusCode::from_u16(status).expect("a status"),
            body: body.into(),
        }
    }

    // R-37
    #[test]
    fn problem_keeps_its_code_and_extra_members() {
        let body = r#"{"code":"turn_in_flight","detail":"Wait.","turn_id":"01T","new":1}"#;
        let error = response(409, body).check_status().expect_err("a problem");
        assert_eq!(error.code(), Some(Code::TurnInFlight));
        let Error::Problem(problem) = error else {
            panic!("{error:?}");
        };
        assert_eq!(
            (problem.status, &problem.extra["turn_id"]),
            (409, &json!("01T"))
        );
        let error = response(502, "<html>").check_status();
        let error = error.expect_err("a page of a proxy");
        assert!(matches!(error, Error::Status(502)), "{error:?}");
    }

    #[test]
    fn page_path_has_only_the_given_parameters() {
        assert_eq!(page_path("/a", None::<u8>, None), "/a");
        assert_eq!(page_path("/a", Some(7), None), "/a?before=7");
        assert_eq!(page_path("/a", Some(7), Some(2)), "/a?before=7&limit=2");
    }
}
