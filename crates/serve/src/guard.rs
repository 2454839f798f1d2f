//! Who may look? This machine alone, or whoever has the token; and no other site's page.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::cross_site;
use crate::error::Refusal;
use crate::site::Site;

/// What the page may load, and who may show it in a frame.
macro_rules! policy {
    ($framed_by:literal) => {
        concat!(
            "default-src 'self'; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'none'; \
             form-action 'none'; frame-ancestors ",
            $framed_by
        )
    };
}

/// The policy of a page that a notebook of this machine may show.
const FRAMED: &str = policy!("http://127.0.0.1:* http://localhost:* http://[::1]:*");

/// What a browser is told with every answer: nothing may be framed, loaded from elsewhere by the
/// page, or shown by another site's, and nothing is to be kept unless the answer says so.
const TOLD: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, policy!("'none'")),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Lets a request through, or not.
pub(crate) async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let framed = site.framed;
    let mut response = match admitted(&site, &parts) {
        Err(refusal) => refusal.into_response(),
        Ok(cookie) => {
            let mut response = next.run(Request::from_parts(parts, body)).await;
            if let Some(cookie) = cookie {
                response.headers_mut().insert(header::SET_COOKIE, cookie);
            }
            response
        }
    };
    let headers = response.headers_mut();
    if framed {
        let policy = HeaderValue::from_static(FRAMED);
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    for (name, value) in TOLD {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// A cookie to be set, if any, or why not.
fn admitted(site: &Site, request: &Parts) -> Result<Option<HeaderValue>, Refusal> {
    cross_site::refuse(request, site.framed)?;
    match &site.session {
        Some(session) => session.admit(request),
        None => from_here(&request.headers).map(|()| None),
    }
}

/// A stranger's page could name this machine by a name of its own; a browser then says that name.
fn from_here(headers: &HeaderMap) -> Result<(), Refusal> {
    // A name that is not text is none of this machine's.
    let host = headers.get(header::HOST);
    let host = host.map(|h| h.to_str().unwrap_or("?"));
    let name = host.map(|h| match h.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => name,
        _ => h,
    });
    let name = name.map(|n| n.trim_start_matches('[').trim_end_matches(']'));
    match name {
        None | Some("localhost") => Ok(()),
        Some(name) if name.parse::<IpAddr>().is_ok_and(|a| a.is_loopback()) => Ok(()),
        Some(name) => Err(Refusal(
            StatusCode::FORBIDDEN,
            format!("this page is for this machine alone, not for {name:?}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine() {
        let asked = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            from_here(&headers).is_ok()
        };
        for host in ["localhost", "localhost:80", "127.0.0.1:4242", "[::1]:4242", "127.3.2.1"] {
            assert!(asked(host), "{host}");
        }
        for host in ["evil.example", "evil.example:4242", "192.168.1.2", "localhost.evil.example"] {
            assert!(!asked(host), "{host}");
        }
    }
}
