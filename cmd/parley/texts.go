// This file holds the text that people see from this package.

package main

// textFirst is the text that the program prints if it is called without a command.
const textFirst = `Parley puts an AI agent into Slack, Discord and Telegram, and into this terminal.

  parley onboard   sets it up: a model, a chat platform, and the first answer
  parley chat      lets you talk to the agent here, with a built-in demo if there's no model yet
  parley serve     serves the chat platforms that are configured
  parley help      lists all commands
`

const (
	textNoAgent           = "there's no agent %q; did you mean %s?"
	textConversations     = "Your conversations here, newest first; /sessions N opens one:"
	textUseAnother        = ".\nTo use another one, edit %s: set name in [model], or model in [agents.%s], and restart Parley."
	textAddYes            = " If so, add --yes."
	textInUse             = "%s is already in use; move its contents aside?"
	textMovedAside        = "The old contents are now in %s; delete them when you don't need them anymore.\n"
	textUserOrSession     = "Give either --user or --session.\n\n"
	textErase             = "Erase everything from %s for good?"
	textErasingGoesOn     = "%w. The erasing goes on, at the latest when parley serve runs again. To get its receipt within a day, run: parley forget --receipt %s"
	textNotErased         = "not everything was erased: %s. Run the command again to erase the rest"
	textMigrationStays    = "%w. Run the same command again, and it goes on: the logs, the book and the messages that were copied completely stay there, and only the rest is copied. Until then, parley serve starts with neither configuration"
	textNothingMoved      = "%w before anything was moved, so nothing has changed"
	textBackupInterrupted = "%w. Nothing is left of this backup, and the file is as it was before. Run the command again, and it begins anew: a backup shows one moment"
	textPipeInterrupted   = "%w, so what was written can't be restored. Run the command again, and it begins anew: a backup shows one moment"
	textForgetAll         = "Drop all dead letters for good?"
	textWouldNotStart     = "The configuration is good, but parley serve wouldn't start right now: %v\n"
	textWouldStart        = "The configuration is good: parley serve would start with it."
	textBecomeOwner       = "Say this to the bot on %s within the hour: whoever does so first owns it.\n\n  %sstart %s\n"
	textNothingToServe    = "There's nothing for anybody to talk to yet: no [channels.NAME] is configured.\nparley onboard sets up a chat platform and a model; or set TELEGRAM_BOT_TOKEN, or write a parley.toml and run parley config check.\nparley chat lets you talk to the agent here, in a terminal.\n"
	textReplace           = " already exists, and it's different. Replace it?"
	textVariables         = "The variables that the configuration reads are in %s, which only its owner can read.\n"
	textStartNow          = "Start it now, and every time the machine starts?"
	textToStart           = "To start it:\n\n  %s\n\n"
	textItsLog            = "Its log: %s\n"
	textJoinFirst         = "the service's home is %[1]s, and no node has joined from there: run `parley nodes invite` on the server, then `parley --home %[1]s node join URL CODE` here"
	textOverSSH           = "a server runs `parley node --stdio` over ssh, because of a setting like runs_on = \"ssh://user@host\"; by hand, add --check"
	textNodeJoined        = "This device has joined %[1]s as %[2]s. The fingerprint of its key is %[3]s.\n\nStart it with: parley node (or parley node --install, to keep it running)\nThen an owner accepts what it offers, on the server: parley nodes accept %[2]s\n"
	textStillThere        = "The configuration and the home %s are still there.\n"
	textAccepted          = "Accepted from %s: %s.\n"
	textInvited           = "Run this on the device:\n\n  parley node join %s %s\n\n%sThe code works once, until %s. Then start `parley node` there, and accept it here with `parley nodes accept`.\n%s"
	textInvitedThrough    = "Or this, if it reaches only the MQTT broker:\n\n  parley node join %s %s\n\n"
	textNodeAddress       = "Replace https://… with the address at which the device reaches this server. With [http] public_url, it's printed here.\n"
	textAcceptNode        = "Let agents use the node %s, with these tools?"
	textNoAgentHas        = "No agent may use it yet: write agents = [\"main\"] under [nodes.%s] in the configuration.\n"
	textRevokeNode        = "Remove the node %s? It has to join again before it can be used."
	textNodeRevoked       = "%s is removed, and its link is closed.\n"
	textAcceptSkill       = "Accept the skill %s for all conversations?"
	textSkillAccepted     = "Agents now have the skill %s. It's in %s.\n"
	textSkillRefused      = "The proposal %s has been dropped.\n"
	textNoSkillNamed      = "name the skill: parley skills accept lists the proposals"
	textLongInput         = "Standard input is longer than 10 MB, which is the most that can be sent: send less of it."
	textPageLink          = "Open this link within %d seconds. It works once:\n\n"
	textOpeningBrowser    = "\nI'm opening it in your browser."
	textRunsNow           = "The agent is doing it now, in %s.\n"
	textPaused            = "%s is paused.\n"
	textDueNext           = "%s is due next at %s.\n"
	textSignedOut         = "This browser is signed out."
	textNoArchive         = "no archive of the audit is configured: write archive in [audit], or name the configuration file with --config"
	textArchiveWhole      = "Intact from %s to %s: %d files with %d records.\n"
	textArchiveEmpty      = "The archive has no files yet."
	textArchiveBroken     = "the archive isn't as it was archived; see above"
	textArchiveAlone      = "The database knows of no archived day, so I can't tell whether somebody has rewritten all the files."
	textBrokenLine        = "%s, line %d: %s\n"
	textBrokenFile        = "%s: %s\n"
	textRecallUsage       = "say /recall WORDS"
	textRecallWhere       = "\n\nWithout --session, it searches the %d most recently used conversations that match."
)
