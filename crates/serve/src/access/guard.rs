//! Who may talk to this server at all (reliability G4).
//!
//! A page of another site can make a browser send requests to this server, and a foreign name can
//! be made to resolve to it. So the Host header must be a loopback name, or one that the server is set
//! up for, and an Origin header must
//! be this server's own or one that is listed; other requests are refused before they are parsed.
//! A browser sends some requests of other sites without Origin, such as images and scripts; it marks
//! them with `Sec-Fetch-Site`, and they are refused unless they only open a page.

use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use turnwire_wire::problem::Code;

use crate::access::cors::CorsPolicy;
use crate::access::forwarded::ForwardedRequest;
use crate::access::header::single_value;
use crate::config::setting::site::SiteOrigin;
use crate::error::RequestFault;

/// The scheme and the authority of WebSockets of this server, as the client can reach it; part of
/// URLs in responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketBase(pub String);

/// The `Origin` of the page of a listed site that sent the request; `None` for the server's own
/// pages and for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallingSite(pub Option<HeaderValue>);

/// Under which names the server may be called, and from which pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    pub(crate) cors: CorsPolicy,
    /// How clients reach the server from outside.
    pub(crate) public: Option<SiteOrigin>,
    /// Names from the settings, besides that of the public URL.
    pub(crate) hosts: Vec<String>,
    /// True if callers prove who they are: a page that reaches the server by a name of its own
    /// can do nothing then.
    pub(crate) is_authenticated: bool,
}

/// A request that [`Guard::admit`] accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdmittedRequest {
    pub(crate) base: WebSocketBase,
    pub(crate) site: CallingSite,
}

impl Guard {
    /// Accepts a request by its Host, Origin and `Sec-Fetch-*` headers, or returns the refusal.
    pub(crate) fn admit(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        forwarded: &ForwardedRequest,
    ) -> Result<AdmittedRequest, RequestFault> {
        let refused = || {
            RequestFault::new(
                Code::HostNotAllowed,
                "The Host header must be localhost, an address in 127.0.0.0/8 or [::1], or a name \
                 that the server is set up for.",
            )
        };
        let host = single_value(headers, header::HOST)
            .map_err(|_| refused())?
            .ok_or_else(refused)?;
        let own = self.own_origin(host, false).ok_or_else(refused)?;
        // An absolute request target would overrule the Host header; it must not name another.
        if let Some(target) = uri.authority()
            && self.own_origin(target.as_str(), false).as_ref() != Some(&own)
        {
            return Err(refused());
        }
        let seen = match &forwarded.host {
            Some(host) => self
                .own_origin(host, forwarded.is_https)
                .ok_or_else(refused)?,
            None if forwarded.is_https => self.own_origin(host, true).ok_or_else(refused)?,
            None => own,
        };
        let base = match (&self.public, forwarded.host.is_some() || forwarded.is_https) {
            (Some(public), _) => public.websocket(),
            (None, true) => seen.websocket(),
            // As the client wrote it.
            (None, false) => format!("ws://{host}"),
        };
        let site = self.calling_site((method, uri), headers, &seen)?;
        Ok(AdmittedRequest {
            base: WebSocketBase(base),
            site: CallingSite(site),
        })
    }

    /// The site that the request comes from, or the refusal.
    fn calling_site(
        &self,
        (method, uri): (&Method, &Uri),
        headers: &HeaderMap,
        own: &SiteOrigin,
    ) -> Result<Option<HeaderValue>, RequestFault> {
        let foreign = || {
            RequestFault::new(
                Code::OriginNotAllowed,
                "The Origin header must be absent, this server's own, or listed in \
                 http.cors_origins.",
            )
        };
        let Some(origin) = single_value(headers, header::ORIGIN).map_err(|_| foreign())? else {
            if is_of_other_site(headers) && !opens_page(method, uri, headers) {
                return Err(RequestFault::new(
                    Code::OriginNotAllowed,
                    "Pages of other sites may only link to this server's pages.",
                ));
            }
            return Ok(None);
        };
        let is_own = SiteOrigin::read(origin)
            .is_some_and(|origin| origin == *own || self.public.as_ref() == Some(&origin));
        if is_own {
            Ok(None)
        } else if self.cors.lists(origin) {
            Ok(headers.get(header::ORIGIN).cloned())
        } else {
            Err(foreign())
        }
    }

    /// The origin of this server when it is called by `authority`, a host with or without a port.
    fn own_origin(&self, authority: &str, is_https: bool) -> Option<SiteOrigin> {
        let scheme = if is_https { "https" } else { "http" };
        let origin = SiteOrigin::read(&format!("{scheme}://{authority}"))?;
        if origin.is_loopback() {
            return Some(origin);
        }
        let public = self.public.as_ref();
        let is_known = self.is_authenticated
            && (origin.is_address()
                || public.is_some_and(|public| public.host() == origin.host())
                || self.hosts.iter().any(|host| host == origin.host()));
        is_known.then_some(origin)
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
        let guard = Guard {
            cors: cors.clone(),
            ..Guard::default()
        };
        let forwarded = ForwardedRequest::default();
        let admitted = guard.admit(&Method::GET, &uri, &headers, &forwarded);
        admitted.map_err(|fault| fault.code())
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
            let (guard, forwarded) = (Guard::default(), ForwardedRequest::default());
            let admitted = guard.admit(method, &Uri::from_static(path), &headers, &forwarded);
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
        let own = asked("/", &["LocalHost:8421"], &[], &CorsPolicy::default());
        let own = own.expect("loopback");
        assert_eq!(own.base, WebSocketBase("ws://LocalHost:8421".into()));
        assert_eq!(own.site, CallingSite(None));
    }

    fn public(host: &str, origin: &[&str], forwarded: ForwardedRequest) -> Result<String, Code> {
        let guard = Guard {
            cors: CorsPolicy::default(),
            public: SiteOrigin::read("https://chat.example.com"),
            hosts: vec!["turnwire.internal".into()],
            is_authenticated: true,
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().expect("a header"));
        for value in origin {
            headers.append(header::ORIGIN, value.parse().expect("a header"));
        }
        let uri = Uri::from_static("/sessions");
        let admitted = guard.admit(&Method::POST, &uri, &headers, &forwarded);
        admitted
            .map(|admitted| admitted.base.0)
            .map_err(|fault| fault.code())
    }

    #[test]
    fn public_server_accepts_its_names_and_no_others() {
        let plain = ForwardedRequest::default;
        for host in [
            "chat.example.com",
            "chat.example.com:8421",
            "127.0.0.1:8421",
            "10.1.2.3:8421",
            "[fd00::1]:8421",
            "turnwire.internal:8421",
        ] {
            let base = public(host, &[], plain());
            assert_eq!(base, Ok("wss://chat.example.com".into()), "{host}");
            let page = public(host, &["https://chat.example.com"], plain());
            assert!(page.is_ok(), "{host}");
        }
        for host in ["evil.com", "chat.example.com.evil.com", "internal"] {
            assert_eq!(
                public(host, &[], plain()),
                Err(Code::HostNotAllowed),
                "{host}"
            );
        }
        for origin in ["http://chat.example.com", "https://evil.com", "null"] {
            let refused = public("chat.example.com:1", &[origin], plain());
            assert_eq!(refused, Err(Code::OriginNotAllowed), "{origin}");
        }
        let said = |host: &str| ForwardedRequest {
            host: Some(host.into()),
            is_https: true,
            client: None,
        };
        assert!(public("127.0.0.1:8421", &[], said("chat.example.com")).is_ok());
        let foreign = public("127.0.0.1:8421", &[], said("evil.com"));
        assert_eq!(foreign, Err(Code::HostNotAllowed));
    }

    #[test]
    fn proxy_tells_the_scheme_where_no_public_url_is_set() {
        let guard = Guard {
            is_authenticated: true,
            hosts: vec!["a.example.com".into()],
            ..Guard::default()
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "a.example.com".parse().expect("a header"));
        let ask = |is_https, host: Option<&str>| {
            let forwarded = ForwardedRequest {
                is_https,
                host: host.map(str::to_owned),
                client: None,
            };
            let admitted = guard.admit(&Method::GET, &Uri::from_static("/"), &headers, &forwarded);
            admitted.expect("admitted").base.0
        };
        assert_eq!(ask(false, None), "ws://a.example.com");
        assert_eq!(ask(true, None), "wss://a.example.com");
        assert_eq!(
            ask(true, Some("a.example.com:444")),
            "wss://a.example.com:444"
        );
    }

    // G4
    #[test]
    fn open_server_is_called_by_loopback_names_alone() {
        let guard = Guard {
            public: SiteOrigin::read("https://chat.example.com"),
            hosts: vec!["turnwire.internal".into()],
            ..Guard::default()
        };
        for host in ["chat.example.com", "turnwire.internal", "10.1.2.3"] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().expect("a header"));
            let uri = Uri::from_static("/");
            let forwarded = ForwardedRequest::default();
            let refused = guard.admit(&Method::GET, &uri, &headers, &forwarded);
            let code = refused.map_err(|fault| fault.code()).err();
            assert_eq!(code, Some(Code::HostNotAllowed), "{host}");
        }
    }

    #[test]
    fn listed_origin_is_allowed_and_host_still_checked() {
        let site = SiteOrigin::read("http://localhost:3000").expect("a site");
        let cors = CorsPolicy::new(&[site]);
        let ask = |host: &str, origin: &[&str]| asked("/", &[host], origin, &cors);
        let listed = ask("localhost:8421", &["http://localhost:3000"]).expect("listed");
        assert_eq!(
            listed.site.0,
            Some(HeaderValue::from_static("http://localhost:3000"))
        );
        let own = ask("localhost:8421", &["http://localhost:8421"]).expect("own");
        assert_eq!(own.site.0, None);
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
