//! Who has shown the token? A browser shows it once, in the address, and from then on a cookie: a
//! number drawn when the server starts, so long that it cannot be guessed, and not the token.

use std::io;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::ServeError;
use crate::error::Refusal;

/// Characters of a token, at least: a shorter one could be guessed, and wrong ones are not counted.
const LEAST: usize = 16;

/// A token of 128 random bits.
pub fn draw_token() -> io::Result<String> {
    let mut drawn = [0; 16];
    getrandom::fill(&mut drawn).map_err(io::Error::other)?;
    Ok(format!("{:032x}", u128::from_le_bytes(drawn)))
}

/// The token, and the cookie that stands for it.
#[derive(Debug)]
pub(crate) struct Session {
    token: String,
    /// With the port in it: a browser has the same cookies for all servers of a machine.
    cookie_name: String,
    cookie: String,
    /// Whether the page is reached by https, and the cookie is never to be sent otherwise.
    https: bool,
}

impl Session {
    /// Draws the cookie; fails where the token is one that could be guessed or not be typed.
    pub fn new(token: String, port: u16, https: bool) -> Result<Session, ServeError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if token.len() < LEAST || !token.chars().all(plain) {
            return Err(ServeError::BadToken);
        }
        Ok(Session {
            token,
            cookie_name: format!("anchorhood_{port}"),
            cookie: draw_token()?,
            https,
        })
    }

    /// Lets a request through that shows the cookie or the token; with the token in its address it
    /// is given the cookie, so that links need not carry it. One request shows one token at most.
    pub fn admit(&self, request: &Parts) -> Result<Option<HeaderValue>, Refusal> {
        if self.has_cookie(&request.headers) {
            return Ok(None);
        }
        let bearer = text(&request.headers, header::AUTHORIZATION);
        let bearer = bearer.and_then(|v| v.strip_prefix("Bearer "));
        let mut query = request.uri.query().unwrap_or("").split('&');
        let named = query.find_map(|q| q.strip_prefix("token="));
        let shown = bearer.or(named).ok_or_else(|| {
            unauthorised("a token is needed: open this page with ?token=WORD, or send the header Authorization: Bearer WORD")
        })?;
        if !same(shown, &self.token) {
            return Err(unauthorised("this is not the token"));
        }
        match bearer {
            Some(_) => Ok(None),
            None => {
                let (name, value) = (&self.cookie_name, &self.cookie);
                let secure = if self.https { "; Secure" } else { "" };
                let set = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/{secure}");
                Ok(HeaderValue::from_str(&set).ok())
            }
        }
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = text(headers, header::COOKIE).unwrap_or("").split(';');
        cookies
            .filter_map(|c| c.trim().split_once('='))
            .any(|(name, value)| name == self.cookie_name && same(value, &self.cookie))
    }
}

fn unauthorised(sentence: &str) -> Refusal {
    Refusal(StatusCode::UNAUTHORIZED, sentence.into())
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|v| v.to_str().ok())
}

/// Compared without telling by the time it takes how much was right; how long it is may be told.
fn same(a: &str, b: &str) -> bool {
    let differing = a.bytes().zip(b.bytes()).fold(0, |d, (a, b)| d | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differing) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "open-sesame-open";

    fn asked(session: &Session, path: &str, head: &[(&str, &str)]) -> Result<Option<String>, u16> {
        let request = axum::http::Request::builder().uri(path);
        let add =
            |r: axum::http::request::Builder, (name, value): &(&str, &str)| r.header(*name, *value);
        let (parts, ()) = head.iter().fold(request, add).body(()).unwrap().into_parts();
        let admitted = session.admit(&parts);
        let cookie = |c: HeaderValue| c.to_str().unwrap().to_string();
        admitted.map(|c| c.map(cookie)).map_err(|r| r.0.as_u16())
    }

    #[test]
    fn the_cookie_stands_for_the_token_and_is_another() {
        let session = Session::new(TOKEN.into(), 80, false).unwrap();
        let given = asked(&session, "/?token=open-sesame-open", &[]).unwrap().unwrap();
        assert!(!given.contains(TOKEN) && given.contains("HttpOnly; SameSite=Strict"));
        let cookie = given.split(';').next().unwrap();
        assert_eq!(asked(&session, "/", &[("Cookie", cookie)]), Ok(None));
        let among = format!("a=b; {cookie}; c=d");
        assert_eq!(asked(&session, "/", &[("Cookie", &among)]), Ok(None));
        // Another server, or the same one started again, has another.
        let other = Session::new(TOKEN.into(), 80, false).unwrap();
        assert_eq!(asked(&other, "/", &[("Cookie", cookie)]), Err(401));
        assert_eq!(asked(&other, "/", &[("Cookie", "anchorhood_80=open-sesame-open")]), Err(401));
    }

    #[test]
    fn a_page_that_is_reached_by_https_has_a_cookie_for_https_alone() {
        for https in [false, true] {
            let session = Session::new(TOKEN.into(), 80, https).unwrap();
            let given = asked(&session, "/?token=open-sesame-open", &[]);
            let given = given.unwrap().unwrap();
            assert_eq!(given.split("; ").any(|part| part == "Secure"), https);
        }
    }

    #[test]
    fn a_request_shows_one_token() {
        let session = Session::new(TOKEN.into(), 80, false).unwrap();
        assert_eq!(asked(&session, "/?token=wrong&token=open-sesame-open", &[]), Err(401));
        let wrong = ("Authorization", "Bearer wrong");
        assert_eq!(asked(&session, "/?token=open-sesame-open", &[wrong]), Err(401));
        let right = ("Authorization", "Bearer open-sesame-open");
        assert_eq!(asked(&session, "/", &[right]), Ok(None));
        assert_eq!(asked(&session, "/", &[]), Err(401));
    }

    #[test]
    fn tokens_that_are_none() {
        for token in ["", "fifteen-letters", "with spaces in it", "späßchen-und-mehr"] {
            let refused = Session::new(token.into(), 80, false);
            assert!(matches!(refused, Err(ServeError::BadToken)), "{token}");
        }
    }

    #[test]
    fn a_drawn_token_has_128_bits_and_is_accepted() {
        let [a, b] = [draw_token().unwrap(), draw_token().unwrap()];
        assert!(a.len() == 32 && a.chars().all(|c| c.is_ascii_hexdigit()) && a != b);
        Session::new(a, 80, false).unwrap();
        Session::new("just-16-letters_".into(), 80, false).unwrap();
    }

    #[test]
    fn a_token_is_right_or_wrong() {
        assert!(same("abcdefgh", "abcdefgh"));
        assert!(!same("abcdefgh", "abcdefgi") && !same("abc", "abcdefgh") && !same("", "a"));
    }
}
