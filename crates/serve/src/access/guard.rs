//! Who may talk to this server at all (reliability G4).
//!
//! A page of another site can make a browser send requests to this server, and a foreign name can
//! be made to resolve to it. So the Host header must be a loopback name, and an Origin header must
//! be this server's own or one that is listed; other requests are refused before they are parsed.
//! A browser sends some requests of other sites without Origin, such as images and scripts; it marks
//! them with `Sec-Fetch-Site`, and they are refused unless they only open a page.

use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use turnwire_wire::problem::Code;

use crate::access::cors::CorsPolicy;
use crate::config::setting::site::SiteOrigin;
use crate::error::RequestFault;
use crate::request::header::single_value;

/// The host and port of the request as the client wrote them; part of URLs in responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnHost(pub String);

/// A request that [`admit`] accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdmittedRequest {
    /// The name by which the client reached the server.
    pub(crate) host: OwnHost,
    /// The `Origin` header, if the page of a listed site sent the request.
    pub(crate) site: Option<HeaderValue>,
}

/// Accepts a request by its Host, Origin and `Sec-Fetch-*` headers, or returns the refusal.
pub(crate) fn admit(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    cors: &CorsPolicy,
) -> Result<AdmittedRequest, RequestFault> {
    let refused = || {
        RequestFault::new(
            Code::HostNotAllowed,
            "The Host header must be localhost, an address in 127.0.0.0/8 or [::1].",
        )
    };
    let host = single_value(headers, header::HOST)
        .map_err(|_| refused())?
        .ok_or_else(refused)?;
    let own = loopback_origin(host).ok_or_else(refused)?;
    // An absolute request target would overrule the Host header; it must not name another.
    if let Some(target) = uri.authority()
        && loopback_origin(target.as_str()).as_ref() != Some(&own)
    {
        return Err(refused());
    }
    let foreign = || {
        RequestFault::new(
            Code::OriginNotAllowed,
            "The Origin header must be absent, this server's own, or listed in http.cors_origins.",
        )
    };
    let admitted = |site| AdmittedRequest {
        host: OwnHost(host.to_owned()),
        site,
    };
    let Some(origin) = single_value(headers, header::ORIGIN).map_err(|_| foreign())? else {
        if is_of_other_site(headers) && !opens_page(method, uri, headers) {
            return Err(RequestFault::new(
                Code::OriginNotAllowed,
                "Pages of other sites may only link to this server's pages.",
            ));
        }
        return Ok(admitted(None));
    };
    if origin.strip_prefix("http://").and_then(loopback_origin) == Some(own) {
        Ok(admitted(None))
    } else if cors.lists(origin) {
        Ok(admitted(headers.get(header::ORIGIN).cloned()))
    } else {
        Err(foreign())
    }
}

/// Whether a browser says that a page of another origin made the request. Another port of this
/// machine is the same site for a browser, and another origin.
fn is_of_other_site(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    sites.any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"))
}

/// Whether a browser opens a page in a tab: a link to the live page or to the page of a problem,
/// which show nothing of any session by themselves.
fn opens_page(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let says = |name, value| headers.get(name).is_some_and(|given| given == value);
    let is_page = uri.path() == "/" || uri.path().starts_with("/problems");
    method == Method::GET
        && is_page
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
}

/// The origin of a server at `authority`, a loopback host with or without a port.
fn loopback_origin(authority: &str) -> Option<SiteOrigin> {
    SiteOrigin::read(&format!("http://{authority}")).filter(SiteOrigin::is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(target: &str, host: &[&str], origin: &[&str]) -> Result<(), Code> {
        asked(target, host, origin, &CorsPolicy::default()).map(|_| ())
    }

    fn asked(
        target: &str,
        host: &[&str],
        origin: &[&str],
        cors: &CorsPolicy,
    ) -> Result<AdmittedRequest, Code> {
        let mut headers = HeaderMap::new();
        for value in host {
            headers.append(header::HOST, value.parse().expect("a header"));
        }
        for value in origin {
            headers.append(header::ORIGIN, value.parse().expect("a header"));
        }
        let uri = target.parse().expect("a target");
        admit(&Method::GET, &uri, &headers, cors).map_err(|f| f.code())
    }

    #[test]
    fn any_loopback_name_and_port_may_be_the_host() {
        for host in [
            "localhost",
            "LocalHost:8421",
            "127.0.0.1:8421",
            "127.9.8.7:1",
            "[::1]",
            "[::1]:65535",
        ] {
            assert_eq!(admitted("/", &[host], &[]), Ok(()), "{host}");
        }
    }

    // G4
    #[test]
    fn foreign_host_is_refused() {
        for host in [
            "",
            "example.com",
            "localhost.evil.com:8421",
            "evil.com@localhost",
            "localhost.",
            "10.0.0.1",
            "0.0.0.0:8421",
            "127.1",
            "2130706433",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::1",
            "[::1]x",
            "::1",
            "localhost:",
            "localhost:x",
            "localhost:99999",
            "localhost:+80",
            "localhost, localhost",
        ] {
            let refused = Err(Code::HostNotAllowed);
            assert_eq!(admitted("/", &[host], &[]), refused, "{host}");
        }
        assert_eq!(admitted("/", &[], &[]), Err(Code::HostNotAllowed));
        assert_eq!(
            admitted("/", &["localhost", "localhost"], &[]),
            Err(Code::HostNotAllowed)
        );
        assert_eq!(
            admitted("http://evil.com/", &["localhost"], &[]),
            Err(Code::HostNotAllowed)
        );
        assert_eq!(
            admitted("http://localhost/", &["localhost:80"], &[]),
            Ok(())
        );
    }

    // G4
    #[test]
    fn origin_must_be_absent_or_own() {
        for (host, origin) in [
            ("localhost:8421", "http://localhost:8421"),
            ("localhost:8421", "http://LOCALHOST:8421"),
            ("127.0.0.1:8421", "http://127.0.0.1:8421"),
            ("[::1]:8421", "http://[::1]:8421"),
            ("[::1]:8421", "http://[0:0:0:0:0:0:0:1]:8421"),
            ("localhost", "http://localhost:80"),
        ] {
            assert_eq!(admitted("/", &[host], &[origin]), Ok(()), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.com",
            "http://localhost:8422",
            "http://localhost",
            "https://localhost:8421",
            "http://127.0.0.1:8421",
            "http://localhost:8421/",
            "localhost:8421",
            "http://localhost:8421.evil.com",
            "http://evil.com@localhost:8421",
        ] {
            assert_eq!(
                admitted("/", &["localhost:8421"], &[origin]),
                Err(Code::OriginNotAllowed),
                "{origin}"
            );
        }
        let own = "http://localhost:8421";
        assert_eq!(
            admitted("/", &["localhost:8421"], &[own, own]),
            Err(Code::OriginNotAllowed)
        );
    }

    // G4
    #[test]
    fn requests_of_other_sites_without_origin_may_only_open_pages() {
        let ask = |method: &Method, path: &'static str, fetch: [&str; 3]| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "localhost:8421".parse().expect("a header"));
            let names = ["sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"];
            for (name, value) in names.into_iter().zip(fetch) {
                headers.insert(name, value.parse().expect("a header"));
            }
            let cors = CorsPolicy::default();
            let admitted = admit(method, &Uri::from_static(path), &headers, &cors);
            admitted.map(|_| ()).map_err(|fault| fault.code())
        };
        let refused = Err(Code::OriginNotAllowed);
        for site in ["cross-site", "same-site", "anything"] {
            for (method, path, mode, dest) in [
                (Method::GET, "/sessions", "no-cors", "image"),
                (Method::GET, "/sessions", "navigate", "document"),
                (Method::GET, "/", "navigate", "iframe"),
                (Method::POST, "/", "navigate", "document"),
                (Method::POST, "/chat/stream", "no-cors", "empty"),
            ] {
                assert_eq!(ask(&method, path, [site, mode, dest]), refused, "{path}");
            }
            let link = [site, "navigate", "document"];
            assert_eq!(ask(&Method::GET, "/", link), Ok(()));
            assert_eq!(ask(&Method::GET, "/problems/draining", link), Ok(()));
        }
        for site in ["same-origin", "none"] {
            let own = [site, "cors", "empty"];
            assert_eq!(ask(&Method::POST, "/chat/stream", own), Ok(()));
        }
    }

    #[test]
    fn host_is_returned_as_written() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "LocalHost:8421".parse().expect("a header"));
        let own = admit(
            &Method::GET,
            &Uri::from_static("/"),
            &headers,
            &CorsPolicy::default(),
        )
        .expect("loopback");
        assert_eq!(own.host, OwnHost("LocalHost:8421".into()));
        assert_eq!(own.site, None);
    }

    #[test]
    fn listed_origin_is_allowed_and_host_still_checked() {
        let site = SiteOrigin::read("http://localhost:3000").expect("a site");
        let cors = CorsPolicy::new(&[site]);
        let ask = |host: &str, origin: &[&str]| asked("/", &[host], origin, &cors);
        let listed = ask("localhost:8421", &["http://localhost:3000"]).expect("listed");
        assert_eq!(
            listed.site,
            Some(HeaderValue::from_static("http://localhost:3000"))
        );
        let own = ask("localhost:8421", &["http://localhost:8421"]).expect("own");
        assert_eq!(own.site, None);
        for origin in [
            &["http://localhost:3001"][..],
            &["null"],
            &["http://localhost:3000", "http://localhost:3000"],
        ] {
            let refused = ask("localhost:8421", origin).expect_err("foreign");
            assert_eq!(refused, Code::OriginNotAllowed, "{origin:?}");
        }
        let refused = ask("evil.com", &["http://localhost:3000"]).expect_err("the host");
        assert_eq!(refused, Code::HostNotAllowed);
    }
}
