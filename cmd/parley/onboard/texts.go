// This file holds the text that people see from this package.

package onboard

// textHelp is the text of the command's help after its first line.
const textHelp = `It asks you for whatever the flags leave out; every step has a flag, for use without a terminal. It tries each answer before it writes anything. The settings go to the file that --config names, or else to the home's parley.toml. If that file exists, you can add to it, or replace it and keep the old one under another name.

Examples:

  parley onboard

  parley onboard --provider ollama --model llama3.1

  parley onboard --provider openai --key-file key.txt --channel telegram --token-file token.txt --start

  parley onboard --add --channel slack --token-file bot.txt --app-token-file app.txt`

const (
	textCannotAsk      = "I can't ask anybody here, because this isn't a terminal: give %s (%s)"
	textWhichPlatform  = "Where will people talk to the bot?"
	textBotAnswers     = "%s accepted the token: the bot is %s."
	textTypeAgain      = "That doesn't work: %v.\nFix it and type it again, or type %q."
	textMakeBot        = "\nTo make a bot on %s:"
	textUseVariable    = "$%s is set. Use it? It'll have to be set whenever parley starts."
	textOtherToken     = "That's a different token: the one you need starts with %s."
	textNoInvitation   = "Couldn't make the invite link: %v."
	textOpenInvitation = "\nOpen this link, and choose your server:\n%s\n"
	textOnceThere      = "Press Enter once the bot is there"
	textWhoOwns        = "\nWho owns the bot? If you don't know your own id on %s, press Enter: parley serve will give you a link or a code that makes the bot yours."
	textAddressInUse   = "\n%s is in use by another program."
	textWhereToListen  = "Where should the HTTP server listen"
	textWontWork       = "%q won't work: %v."
	textFirstQuestion  = "This is the first question. Ctrl-C quits without writing anything."
	textAgain          = "%v. Please type it again."
	textYesOrNo        = "y or n, please."
	textNumberOrName   = "Number or name"
	textNoChoice       = "There's no %q here. Type a number from 1 to %d, or a name."
	textWhoseModel     = "Whose model should answer?"
	textServerAddress  = "The server's address, which usually ends in /v1"
	textStartServer    = "Start it, and press Enter to try again; or type another address, or %q."
	textFoundAt        = "Found it at %s."
	textModelsAnswer   = "%s responded. Models: %d."
	textYourKey        = "Your key for "
	textItsKey         = "Its key (Enter for none)"
	textFindKeys       = "You'll find your keys at %s."
	textNotListed      = "%s doesn't list %s; trying it anyway."
	textAskingWord     = "Asking %s for one word …"
	textNoModels       = "It has no models yet: “ollama pull llama3.1” gets you one."
	textModelName      = "The model's number or name"
	textNoModel        = "There's no %q here."
	textWhenUsed       = "When should the bot use it?"
	textFirstMessage   = "Say hello to me in one short sentence."
	textHowToAnswer    = "Press Enter to accept what's in [brackets], type %q to go back a question, or press Ctrl-C to quit. Nothing is written until the end."
	textOldFile        = "The old file is now %s."
	textExists         = " already exists.\nWhat do you want to do?"
	textEverything     = "\nThat's everything: %s. It'll be written to\n%s"
	textAskingAgent    = "\nAsking the agent: %s\n"
	textNextChat       = "\nparley chat lets you talk to the agent here. parley onboard adds a chat platform, and docs/configuration.md lists all the settings."
	textWriteThere     = "\nNow you can write to the bot on %s."
	textStartServing   = "Start serving %s now? Ctrl-C stops it."
	textNextServe      = "\nparley serve runs the bot on %s and tells you how to make it yours. parley serve --install has systemd keep it running."
	textItWorks        = "\nThe bot answered its first message on %s: it works. Ctrl-C stops it; parley serve starts it again, and parley serve --install has systemd keep it running.\n"
	textNotRead        = "%s is set, but nothing reads it yet: parley onboard sets up %s."
	textServerService  = "Parley, an AI agent in chats"
	textNodeService    = "Parley, a node that runs calls for agents"
)

// textNoPlace is the text for a user who has no folder for systemd units.
const textNoPlace = "Parley can't find a place for the unit: neither $HOME nor $XDG_CONFIG_HOME is set; set one of them"
