//! Tests from outside, together in one program, since each program is linked anew.

mod common;
mod damaged;
mod device_led;
mod diverged;
mod exact;
mod failing_device;
mod faults;
mod fifty_losses;
mod from;
mod guessing;
mod killed;
mod methods;
mod optimisers;
mod own_method;
mod pretext;
mod ranks;
mod settings;
mod supervised;
mod verdict;
mod views;
mod whitened;
