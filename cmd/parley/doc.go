/*
Parley puts an AI agent into Slack, Discord and Telegram.

This page is the tour for those who are about to change the program. It goes from the
ground up; each stop names the file to open.

# What is said, and how it travels

Everything that is said is a message in a keyed mailbox: package bus. Inbound
mail is keyed by session, outbound mail by address. Whoever works on a mailbox
holds its lease; the lease's fence is a number that only grows, so that a holder
that was cut off can be told from the one that has taken over. bus/bus.go states
the promises. bus/sqlitebus keeps them with one SQLite file and a scheduler in
memory. bus/bustest is the suite that every bus passes.

# What was said

A session's log is the truth about it: package sessions. An entry is a block
that the model sees, or a journal record that says how far a turn has come.
Nothing else is remembered about a turn, so going on after a crash is reading.
sessions/sqlstore keeps the logs, and refuses those who hold an old fence.
sessions/workspace is the directory that a session's tools work in; the kernel
keeps them inside of it. sessions/snapshots keeps what each turn has changed there,
so that /undo takes it back. sessions/outgoing keeps copies of the files that are to
be sent until they are. sessions/sqldb is the ground under all that is SQL: what
many goroutines write is committed in groups, because a durable commit costs a
flush of the disk.

# What can be done

A tool is made of a function by tools.New; the schema comes from the type of its
arguments. Its effect says what a repeat would do: pure, idempotent,
reconcilable, or once. The effect decides what happens to a call that was cut
off, and whether calls may run side by side. The families are in the folders
below tools, and know nothing but the small operations that they are handed.
What comes from elsewhere is in tools/mcp and tools/skills; cmd/parley/server/mcpservers and
cmd/parley/server/skillfolders say which agents have it.
tools/sandbox runs commands inside walls. Beside each stands a process of this program,
tools/sandbox/supervisor, which begins before main does. tools/documents runs this program
there once more to read a PDF or an office file, so that no stranger's file is parsed here.

# Who answers

agent says what an agent is. agent/worker claims a session (worker.go), opens its log,
goes on with the turn that was cut off, and then answers the mail in its order (run.go).
agent/turn makes a turn of its entries; steps.go of the worker goes from step to step:
agent/model gets an answer from the model, and agent/calls holds the one function that
every tool call passes. Its decide.go says whether a call runs; where people have to be
asked, park.go of the worker lets the turn wait and answers.go goes on with it, and
channels/asks takes their answers. Each durable line, C1 to C7 and P1 to P5, is in
docs/protocol, with what happens if the process dies after it. agent/journal is
the log while it is worked on, and agent/transcript makes of it what the model reads. agent/llm is the contract
with a model: agent/openai speaks to providers, agent/demo is the built-in one that
needs none, and agent/failover asks several in turn.

# How people are reached

A channels.Channel is one account on one platform; adapters translate and do
nothing else. The Gateway (channels/gateway) lets in who may talk, before
anything is kept, and publishes. The Dispatcher (channels/dispatch) takes
what the bot says and sends it part by part; before each part it writes into the
Book that it is about to, and after it what became of it. channels/drafts shows an
answer while it is being made. channels/markup renders one Markdown text for every
platform and splits it to its limit.

# How it is put together

This package is the command line: each command has a file of its own; main.go lists and
runs them, and join.go gives them a server to talk to.

server/ is where everything meets. server.go opens a home and makes the parts of the server,
which list.go lists: the front, the channels, the worker, the dispatchers and more; part.go says
how a part lives, and in which order all are stopped;
endpoints.go makes channels of settings, agents.go agents, and tools.go their tools.
channels/routing finds with which agent, and so in which session, a message is answered, and
server/models makes the models that each agent asks.
What it puts together is named in three places: server/platforms has a row for each chat
platform, data/home opens and checks what is remembered, in files or in a Redis and a
PostgreSQL that a fleet shares, and server/ itself knows the models and the tools.
config/ reads the file and the environment, by config/schema.
imports_test.go holds every import against the import rules.

Programs and terminals come in through server/front.go: api/ is the HTTP server and
the home's socket, channels/outbox takes what is to be said and knows what became of it,
channels/onbehalf sends what agents want sent,
channels/webhook makes messages of alerts and builds, metrics/ counts, and sessions/audit records what
was done. server/sandbox opens the sandbox that commands run in. terminal/client is the
terminal's end of that: it joins the server that has the home, or becomes that server
for a moment (server/server.go), so that a command is written once. terminal/ and
terminal/report are what commands print with.

agent/schedules starts the agent's turns when the schedules that people have made are due:
sessions/schedules keeps them, and bus/timers wakes it.

doctor/ says what is not in order. data/erase removes what people said, data/backup copies a
home; data/migrate takes a bot from its home to the servers of a fleet. crash/ has the points
at which a test kills the process; chaos/ kills processes at random.
*/
package main
