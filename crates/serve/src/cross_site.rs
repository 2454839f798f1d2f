//! Is it another site's page that asks? A browser sends requests to this machine for any page that
//! it shows, and says so: in `Sec-Fetch-Site`, and in `Origin` where something is sent. What is no
//! browser says neither, and is let through.

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};

use crate::error::Refusal;

/// Refuses what another site's page asks for. A link to this page may be followed from anywhere: a
/// page is all it shows. So is a frame where it may be `framed`; whose page may frame it, the
/// browser is told.
pub(crate) fn refuse(request: &Parts, framed: bool) -> Result<(), Refusal> {
    let headers = &request.headers;
    match of_another_site(headers) && !followed_link(&request.method, headers, framed)
        || of_another_origin(headers)
    {
        false => Ok(()),
        true => Err(Refusal(
            StatusCode::FORBIDDEN,
            "this was asked for by a page of another site, which may not".into(),
        )),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    // One that is not text is none of those that are let through.
    headers.get(name).map(|v| v.to_str().unwrap_or("?"))
}

/// Another port of this machine is another's page too: `same-site`.
fn of_another_site(headers: &HeaderMap) -> bool {
    !matches!(text(headers, "sec-fetch-site"), None | Some("same-origin" | "none"))
}

fn followed_link(method: &Method, headers: &HeaderMap, framed: bool) -> bool {
    let shown = match text(headers, "sec-fetch-dest") {
        Some("document") => true,
        Some("iframe") => framed,
        Some(_) | None => false,
    };
    method == Method::GET && text(headers, "sec-fetch-mode") == Some("navigate") && shown
}

/// The page's own address is scheme, name and port; name and port are what `Host` says.
fn of_another_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = text(headers, header::ORIGIN.as_str()) else {
        return false;
    };
    let asked = text(headers, header::HOST.as_str()).unwrap_or_default();
    let from = origin.split_once("://").map_or("", |(_, name)| name);
    from.is_empty() || !from.eq_ignore_ascii_case(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(method: &str, said: &[(&str, &str)]) -> bool {
        refused_where(method, said, false)
    }

    fn refused_where(method: &str, said: &[(&str, &str)], framed: bool) -> bool {
        let request = axum::http::Request::builder().method(method);
        let request = request.header("Host", "localhost:4242");
        let add =
            |r: axum::http::request::Builder, (name, value): &(&str, &str)| r.header(*name, *value);
        let request = said.iter().fold(request, add);
        refuse(&request.body(()).unwrap().into_parts().0, framed).is_err()
    }

    #[test]
    fn pages_of_others_are_refused() {
        for said in [
            ("Origin", "http://evil.example"),
            ("Origin", "http://localhost:4243"),
            ("Origin", "http://localhost"),
            ("Origin", "null"),
            ("Origin", ""),
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
            ("Sec-Fetch-Site", "what is this"),
        ] {
            assert!(refused("POST", &[said]), "{said:?}");
            assert!(refused("GET", &[said]), "{said:?}");
        }
        let both = [("Origin", "http://evil.example"), ("Sec-Fetch-Site", "same-origin")];
        assert!(refused("POST", &both));
    }

    #[test]
    fn the_page_itself_and_programs_are_not() {
        for said in [
            &[][..],
            &[("Origin", "http://localhost:4242")],
            &[("Origin", "https://LOCALHOST:4242")],
            &[("Sec-Fetch-Site", "same-origin"), ("Origin", "http://localhost:4242")],
            &[("Sec-Fetch-Site", "none"), ("Sec-Fetch-Mode", "navigate")],
        ] {
            assert!(!refused("POST", said) && !refused("GET", said), "{said:?}");
        }
    }

    #[test]
    fn a_link_may_be_followed_and_nothing_else() {
        let from = ("Sec-Fetch-Site", "cross-site");
        let (go, page) = (("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document"));
        assert!(!refused("GET", &[from, go, page]));
        assert!(refused("POST", &[from, go, page]), "a form that is sent");
        let frame = ("Sec-Fetch-Dest", "iframe");
        assert!(refused("GET", &[from, go, frame]));
        assert!(!refused_where("GET", &[from, go, frame], true));
        assert!(refused_where("POST", &[from, go, frame], true));
        assert!(refused_where("GET", &[from, frame], true));
        assert!(refused(
            "GET",
            &[from, ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image")]
        ));
    }
}
