package ssh

// What is wrong with a target, and what its operator can do.
const (
	textMissing     = "ssh can't be started here: %s"
	textFailed      = "ssh can't connect: %s"
	textAbsent      = "ssh connects, but there is no parley: the shell there doesn't find it"
	textOld         = "ssh connects, but the parley there is too old: it doesn't know `parley node --stdio`"
	textOther       = "ssh connects, but the parley there is of another release that speaks a different protocol"
	textEnded       = "ssh connects, but the parley there ended with code %d: %s"
	textNoise       = "ssh connects, but something other than parley writes first there: %q"
	textSilent      = "ssh was started, but the parley there says nothing"
	textRefused     = "the parley there refuses: %s"
	textSaidNothing = "it doesn't say why"

	textInstall = "install OpenSSH's client (the package openssh-client), so that the server finds ssh in its PATH"
	textTry     = "as the user that runs the server, run `%s true`: it has to work without asking anything, with a key that needs no password and a known host"
	textPlace   = "install parley there, in the PATH of a shell that isn't interactive, or name its place: runs_on = \"%s\""
	textUpgrade = "install the same release of parley there as here"
	textQuiet   = "have the shell there print nothing when it isn't interactive: look at .bashrc, .zshenv and the like, and at a ForceCommand of sshd"
	textLook    = "run `parley node --stdio --check` there, as that user: it says what is wrong"
)
