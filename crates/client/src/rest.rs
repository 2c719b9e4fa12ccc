//! JSON requests over [`HttpConnections`], and how a response becomes a value or an [`Error`].

use std::fmt::Display;

use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::http::{HttpConnections, RestResponse};
use crate::key::SubmitKey;

impl HttpConnections {
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let response = self.exchange(Method::GET, path, None, None).await?;
        response.json()
    }

    pub(crate) async fn get_text(&self, path: &str) -> Result<String, Error> {
        let response = self.exchange(Method::GET, path, None, None).await?;
        response.check_status()?;
        Ok(String::from_utf8_lossy(&response.body).into_owned())
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<(), Error> {
        let response = self.exchange(Method::DELETE, path, None, None).await?;
        response.check_status()
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        key: Option<&SubmitKey>,
    ) -> Result<T, Error> {
        self.post_for_response(path, body, key).await?.json()
    }

    /// Posts `body` and returns the response, for callers that depend on its status.
    pub(crate) async fn post_for_response(
        &self,
        path: &str,
        body: &impl Serialize,
        key: Option<&SubmitKey>,
    ) -> Result<RestResponse, Error> {
        let body = serde_json::to_vec(body).expect("request bodies are plain data");
        self.exchange(Method::POST, path, Some(body), key).await
    }
}

impl RestResponse {
    /// The body of a successful response.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.check_status()?;
        serde_json::from_slice(&self.body)
            .map_err(|error| Error::InvalidResponse(error.to_string()))
    }

    fn check_status(&self) -> Result<(), Error> {
        if self.status.is_success() {
            return Ok(());
        }
        let status = self.status.as_u16();
        let Ok(mut fields) = serde_json::from_slice::<Map<String, Value>>(&self.body) else {
            return Err(Error::Status(status));
        };
        // All members of a problem are optional in RFC 9457.
        for name in ["type", "title", "detail", "code", "trace_id"] {
            fields.entry(name).or_insert_with(|| json!(""));
        }
        fields.insert("status".to_owned(), json!(status));
        match serde_json::from_value(Value::Object(fields)) {
            Ok(problem) => Err(Error::Problem(Box::new(problem))),
            Err(_) => Err(Error::Status(status)),
        }
    }
}

/// The path of a page of a list.
pub(crate) fn page_path(path: &str, before: Option<impl Display>, limit: Option<usize>) -> String {
    let mut query = Vec::new();
    query.extend(before.map(|before| format!("before={before}")));
    query.extend(limit.map(|limit| format!("limit={limit}")));
    if query.is_empty() {
        return path.to_owned();
    }
    format!("{path}?{}", query.join("&"))
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
