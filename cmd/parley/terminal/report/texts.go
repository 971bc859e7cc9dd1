// This file holds the text that people see from this package.

package report

const (
	textNothingWaits   = "Nothing is waiting for an approval or an answer."
	textNoSchedules    = "Nothing is scheduled."
	textNoServers      = "No MCP server is configured: see docs/tools.md."
	textNoNodes        = "No device has joined as a node: see docs/nodes.md."
	textNoTools        = "It offers nothing."
	textNode           = "%s: %s, %s\n  platform      %s\n  release       %s\n  key           %s\n  capabilities  %s\n  agents        %s\n  trusted       %s\n\n"
	textEdgeKey        = "none: it is an edge agent, and only the MQTT broker says that it is this one"
	textSSHKey         = "none: it hasn't joined, but ssh reaches it (%s)"
	textSSHUnnamed     = "no agent's runs_on names it anymore"
	textEdgeTrusted    = "no (trusted = true has no effect on edge agents)"
	textNoSkills       = "There are no skills: see docs/skills.md."
	textNoProposals    = "No agent has proposed a skill."
	textProposal       = "The skill %s, proposed in %s:%s\n"
	textFromStrangers  = " STRANGERS MAY HAVE WRITTEN SOME OF IT"
	textProgram        = " (a program)"
	textNobodyPaired   = "Nobody is paired, and nobody is asking to be."
	textNobodySignedIn = "Nobody is signed in to the web page."
	textNobodyTalked   = "Nobody has talked to the bot yet."
	textNoDeadLetters  = "Parley hasn't given up on any messages."
	textNothingFound   = "Nothing was found for these words."
	textAgent          = "agent"
	textSummary        = "summary"
	textDone           = "what was done"
	textByStrangers    = " (strangers may have written it)"
	textFleet          = "processes of the fleet: %d%s\n"
	textShards         = " (the bus has %d shards)"
	textUnknown        = "?" // a value that is unknown for a process of an older release
	textUpkeepHolds    = "upkeep (%d)"
)
