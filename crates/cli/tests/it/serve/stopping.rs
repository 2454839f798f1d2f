//! Why it does not start, and how it ends.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use anchorhood::PictureIndex;

use crate::common::{signal, trained};
use crate::search::indexed;
use crate::serve::served::Served;

#[test]
fn what_cannot_be_served() {
    let sandbox = indexed("");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let run = |words: &str| sandbox.run(&format!("serve {words}"));
    run(&format!("a --port {port}")).failed(2, &format!("{port}; taken; --port"));
    // An index that somebody made could name the whole disk as its folder; only the one who serves
    // it may.
    let mut wide = PictureIndex::load(sandbox.path("p.index")).unwrap();
    wide.moved_to(&["/"]).unwrap();
    let parts = wide.parts().clone();
    let wide = PictureIndex::from_parts(&sandbox.path("wide.index"), parts).unwrap();
    wide.save().unwrap();
    run("wide.index").failed(2, "wide.index; in /,; --folder");
    let meant = Served::start(&sandbox, &["wide.index", "--folder", "pictures"]);
    assert_eq!(meant.get("/api/picture/3").0, 200);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_cleanly() {
    let sandbox = trained("");
    let mut served = Served::start(&sandbox, &["a"]);
    // Somebody is listening for news: that must not keep the server.
    let news = served.agent.get(format!("{}/api/events", served.address)).call();
    // An upload that has only begun, and people who ask all the time.
    let mut begun = served.connection();
    let head = "POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabc";
    begun.write_all(head.as_bytes()).unwrap();
    let (agent, address) = (served.agent.clone(), served.address.clone());
    let asking = std::thread::spawn(move || {
        let ask = |id: usize| agent.get(format!("{address}/api/search?id={id}")).call();
        (0..).take_while(|i| ask(i % 48).is_ok()).count()
    });
    std::thread::sleep(Duration::from_millis(300));
    signal(served.child.id(), "INT");
    let begun = Instant::now();
    let status = served.child.wait().unwrap();
    assert!(status.success(), "{status}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(asking.join().unwrap() > 0, "they were answered until then");
    let mut rest = vec![];
    let _ = news.unwrap().body_mut().as_reader().read_to_end(&mut rest);
}
