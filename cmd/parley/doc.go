/*
Parley puts an AI agent into Slack, Discord and Telegram.

This page is the tour for people who are about to change the program. It starts with
the foundations; each stop names the file to open.

# What is said, and how it travels

Everything that is said is a message in a mailbox: package bus. The key of an inbound
mailbox is a session, that of an outbound mailbox an address. Whoever works on a mailbox
holds its lease; the lease's fence is a number that only grows, so that a holder
that was cut off can be told from the one that has taken over. bus/bus.go states
the guarantees. bus/sqlitebus implements them with one SQLite file and a scheduler in
memory. bus/bustest is the test suite that every bus passes.

# What was said

A session's log is the truth about it: package sessions. An entry is a block
that the model sees, or a journal record that says how far a turn has come.
Nothing else is stored about a turn, so to continue after a crash, a worker reads the log.
sessions/sqlstore stores the logs, and refuses writers that hold an old fence.
sessions/workspace is the directory that a session's tools work in; the kernel
keeps them inside it. sessions/snapshots stores what each turn has changed there,
so that /undo can revert it. sessions/outgoing stores copies of files until they are
sent. All SQL code is built on sessions/sqldb: it commits the writes of many goroutines
in groups, because a durable commit costs a flush of the disk.

# What can be done

tools.New makes a tool from a function; the tool's schema is derived from the type of the
function's arguments. A tool's effect says what repeating a call would do: pure, idempotent,
reconcilable, or once. The effect decides what happens to a call that was cut
off, and whether calls may run at the same time. The families of tools are in the folders
below tools, and know only the small interfaces and functions that are passed to them.
Tools from elsewhere are in tools/mcp and tools/skills; cmd/parley/server/mcpservers and
cmd/parley/server/skillfolders say which agents get them.
tools/sandbox runs commands inside walls. Beside each command runs a process of this program,
tools/sandbox/supervisor, which begins before main does. tools/documents runs this program
in the sandbox to read a PDF or an office file, so that no stranger's file is parsed here.

# Who answers

Package agent defines what an agent is. agent/worker claims a session (worker.go), opens its
log, continues the turn that was cut off, and then answers the mail in order (run.go).
agent/turn rebuilds a turn from its entries; the worker's steps.go takes it from step to step:
agent/model gets an answer from the model, and agent/calls contains the one function that
every tool call passes through. Its decide.go says whether a call runs; if people have to be
asked, the worker's park.go makes the turn wait and answers.go continues it, and
channels/asks receives the answers. Each durable line, C1 to C7 and P1 to P5, is in
docs/protocol, with what happens if the process dies after it. agent/journal is
the log while it is being worked on, and agent/transcript turns it into what the model reads.
agent/llm is the contract with a model: agent/openai speaks to providers, agent/demo is the
built-in model, which needs no provider, and agent/failover asks several models in turn.

# How people are reached

A channels.Channel is one account on one platform; adapters only translate.
The Gateway (channels/gateway) checks who may talk, before
anything is stored, and publishes their messages. The Dispatcher (channels/dispatch) takes
what the bot says and sends it part by part; before each part it records in the
Book that it is about to send it, and afterwards what became of it. channels/drafts shows an
answer while it is being made. channels/markup renders the same Markdown for every
platform and splits it to fit the platform's limit.

# How it is put together

This package is the command line: each command has a file of its name, or is a package as
onboard is; main.go lists and runs them, and join.go connects them to a server.

Everything meets in server/. server.go opens a home and makes the parts of the server,
which list.go lists: the front, the channels, the worker, the dispatchers and more; part.go
says what happens to a part, and in which order all parts are stopped;
live_channels.go makes the channels in the settings, agents.go the agents, and tools.go their
tools. channels/routing decides which agent, and so which session, answers a message, and
server/models makes the models that each agent asks.
Implementations are named in four places: server/platforms has a row for each chat
platform, server/models names the clients of models, data/home opens and checks the stored
data, in files or in a Redis and a PostgreSQL that a fleet shares, and server/ itself names
the tools.
config/ reads the file and the environment, using config/schema.
imports_test.go checks every import against the import rules.

Programs and terminals connect through server/front.go: api/ serves HTTP and
the home's socket, channels/outbox accepts messages to be sent and knows what became of them,
channels/onbehalf sends what agents want sent,
channels/webhook turns alerts and builds into messages, channels/problems looks for what is
wrong and channels/owners tells the owners, agent/metrics counts, and sessions/audit records
what was done. server/sandbox.go finds the sandbox that commands run in.
terminal/client is the terminal's end of that: it connects to the server that has the home
open, or becomes that server for a moment (server/server.go), so that a command is written
only once. Commands print with terminal/ and terminal/report.

agent/schedules starts the agent's turns when the schedules that people have made are due:
sessions/schedules stores them, and bus/timers wakes it.

doctor/ says what is wrong. data/erase removes what people said, data/backup copies a
home; data/migrate moves a bot from its home to the servers of a fleet. tools/crash defines
the points at which a test kills the process; chaos/ kills processes at random.
*/
package main
