//! Tests from outside, together in one program, since each program is linked anew.

mod common;
mod device_led;
mod discovery;
mod diverged;
mod evaluation;
mod exact;
mod faults;
mod from;
mod interrupted;
mod methods;
mod pretext;
mod ranks;
mod reference;
mod settings;
mod verdict;
mod views;
mod whitened;
