//! Turns as they are told: a scripted model, tools that do one thing, and an emitter that writes
//! down every line in order.

mod recorder;
mod stage;
mod spans;
mod troupe;

mod plain;
mod tools;
mod failure;
mod retry;
mod kept;
mod budget;
mod astray;
mod unsaid;
mod told;
mod stop;
mod approval;
mod past;
mod first_run;

mod binding;
mod worker;
mod route;
mod course;
mod fan_out;
mod axes;
mod faults;
mod template;
mod context;
mod ambient;
mod silence;
mod live;
mod overhead;
mod market;
