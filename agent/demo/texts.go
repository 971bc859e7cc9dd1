// This file holds the text that people see from this package.

package demo

// textIntroduction answers greetings, requests for help, and anything that
// the model doesn't understand.
const textIntroduction = "I'm Parley's built-in demo model: a handful of rules, no AI. The tools I use are real, though. I understand:\n\n" +
	"- list the files (in docs)\n" +
	"- read notes.txt\n" +
	"- write hello to notes.txt\n" +
	"- find hello\n" +
	"- remember that I like tea\n" +
	"- what do you remember\n" +
	"- tell telegram 42 that lunch is ready\n\n" +
	"You can join several of them with “then”.\n\n" +
	"To talk to a real model, run `parley onboard`, which sets one up. Or set `OPENAI_API_KEY` (and `OPENAI_BASE_URL` for another server), " +
	"or `name`, `base_url` and `api_key` under `[model]` in parley.toml."

const (
	textCameBack      = "Here's what came back:\n\n"
	textFailed        = "I couldn't do this: %s. Here's why: %s (%s)"
	textFound         = "Here's what I found:\n\n"
	textOnItsWay      = "It's on its way."
	textFoundNothing  = "I found nothing."
	textNoTool        = "I'd need the tool `%s` for that, and I don't have it."
	textStoppedBefore = "I was stopped before I could do this: %s."
	textSaidLast      = "Most recent messages:\n"
	textNotUnderstood = "I didn't understand that. "
)
