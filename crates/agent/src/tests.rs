//! Whole turns with a scripted model, tools that do one thing, and an emitter that records every event
//! in order.

mod recording_emitter;
mod turn_harness;
mod spans;
mod pack_harness;

mod plain;
mod tools;
mod failure;
mod retry;
mod provider_data;
mod budget;
mod bad_tool_calls;
mod no_output;
mod log_lines;
mod cancel;
mod approval;
mod history;
mod first_run;

mod binding;
mod worker;
mod routing;
mod dispatch_order;
mod fan_out;
mod failure_axes;
mod data_faults;
mod failure_text;
mod context;
mod ambient;
mod watchdog;
mod live_tasks;
mod overhead;
mod demo_pack;
