//! Who may look? This machine alone, or whoever has the token.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::Refusal;
use crate::site::Site;

const COOKIE: &str = "anchorhood_token";

/// Lets a request through, or not. Nothing may be framed or loaded from elsewhere by the page.
pub(crate) async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let admitted = match &site.token {
        Some(token) => given(&request, token),
        None => from_here(request.headers()).map(|()| None),
    };
    let mut response = match admitted {
        Err(refusal) => refusal.into_response(),
        Ok(cookie) => {
            let mut response = next.run(request).await;
            if let Some(cookie) = cookie {
                response.headers_mut().insert(header::SET_COOKIE, cookie);
            }
            response
        }
    };
    let headers = response.headers_mut();
    let policy = "default-src 'self'; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'";
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(policy),
    );
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    response
}

/// A stranger's page could name this machine by a name of its own; a browser then says that name.
fn from_here(headers: &HeaderMap) -> Result<(), Refusal> {
    let host = headers.get(header::HOST).and_then(|h| h.to_str().ok());
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

/// The token in a header, a cookie or the address; in the address it becomes a cookie, so that links need not carry it.
fn given(request: &Request, token: &str) -> Result<Option<HeaderValue>, Refusal> {
    let text = |name| request.headers().get(name).and_then(|v| v.to_str().ok());
    let bearer = text(header::AUTHORIZATION).and_then(|v| v.strip_prefix("Bearer "));
    let cookies = text(header::COOKIE).unwrap_or("").split(';');
    let cookie = cookies
        .filter_map(|c| c.trim().split_once('='))
        .find(|c| c.0 == COOKIE);
    if bearer
        .into_iter()
        .chain(cookie.map(|c| c.1))
        .any(|t| same(t, token))
    {
        return Ok(None);
    }
    let query = request.uri().query().unwrap_or("").split('&');
    let named = query
        .filter_map(|q| q.strip_prefix("token="))
        .any(|t| same(t, token));
    if named {
        let cookie = format!("{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/");
        return Ok(HeaderValue::from_str(&cookie).ok());
    }
    Err(Refusal(
        StatusCode::UNAUTHORIZED,
        "a token is needed: open this page with ?token=WORD, or send the header Authorization: Bearer WORD".into(),
    ))
}

/// Compared without telling by the time it takes how much was right.
fn same(a: &str, b: &str) -> bool {
    let differing = a.bytes().zip(b.bytes()).fold(0, |d, (a, b)| d | (a ^ b));
    a.len() == b.len() && differing == 0
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
        for host in [
            "localhost",
            "localhost:80",
            "127.0.0.1:4242",
            "[::1]:4242",
            "127.3.2.1",
        ] {
            assert!(asked(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:4242",
            "192.168.1.2",
            "localhost.evil.example",
        ] {
            assert!(!asked(host), "{host}");
        }
    }

    #[test]
    fn a_token_is_right_or_wrong() {
        assert!(same("abcdefgh", "abcdefgh"));
        assert!(!same("abcdefgh", "abcdefgi") && !same("abc", "abcdefgh") && !same("", "a"));
    }
}
