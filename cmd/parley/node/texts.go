package node

// These are the texts that the operator of a device reads.
const (
	textNotJoined   = "this device has not joined a server yet (home %s): run `parley nodes invite` on the server, then `parley node join URL CODE` here"
	textBadKey      = "the file %s isn't a node's key: remove it and join again, with `parley nodes invite` on the server, then `parley node join URL CODE` here"
	textOtherName   = "the settings call this node %q, but it has joined as %q: change [node] name, or join again with --name"
	textDeny        = "[node] deny: %v: write something like \"exec_shell(shutdown *)\""
	textAsk         = "[node] ask: %v: write something like \"exec_shell(rm *)\""
	textOffer       = "the node can't offer its tools: %v: look at the folder [node] skills"
	textDamaged     = "%v: nobody knows which calls have run; move the file away if you can accept that a call may run a second time"
	textPlain       = "%s isn't https, so others could read and change what is sent there: give the server an https address, or run it on this machine"
	textAddress     = "%s isn't the address of a server: write something like https://parley.example.org"
	textBroker      = "this isn't the address of a broker: write something like mqtts://broker.example.org:8883, and the user and the password under [mqtt]"
	textShortCode   = "a device that joins through a broker needs the longer code, which `parley nodes invite` prints below the other"
	textRuns        = "a node is already running here: %w: stop it first, or give another folder with --home"
	textNoPipes     = "a server runs `parley node --stdio` over ssh: it can't be run by hand (%v)"
	textOther       = "another server uses the node of this home, or the same server under another name: let each have a user of its own on this machine"
	textUnreachable = "can't reach %s: %w"
	textNoServer    = "%s answered, but not like a Parley server: check the address"
	textNoNodes     = "%s isn't a Parley server that takes nodes (HTTP status %d): check the address, and that the server's release knows nodes"
	textRedirect    = "%s points to another address (%s): join there, if you trust it"
	textWrongCode   = "the code is wrong, used, or older than ten minutes: get a new one with `parley nodes invite` on the server"
	textTaken       = "the name %[1]s is taken: join under another name with --name, or have the owner remove the other node first (`parley nodes revoke %[1]s`)"
	textBadName     = "%q can't be the name of a node: give one with --name, of 1 to 32 of a-z, 0-9 and -, with a letter or a digit first"
	textRefused     = "the server refuses: %s"
)
