package ssh

import "fmt"

// A Kind is a kind of Problem.
type Kind int

// The kinds of problems.
const (
	SSHMissing     Kind = iota // ssh is not installed here, or can't be started; Said has the reason
	SSHFailed                  // ssh itself has failed; Said is its last line
	ProgramMissing             // the other end has no such program
	ProgramTooOld              // the program there doesn't know the option --stdio
	OtherVersion               // the program there speaks another version
	ProgramEnded               // the program there has ended with Code; Said is its last line
	ForeignOutput              // something other than the program has written first; Said is the beginning
	NoOutput                   // no output came in time
	ProgramRefuses             // the program there refuses; Said has the reason
)

// A Problem says why a target can't be reached.
type Problem struct {
	Kind Kind
	Said string // by the other end, or by ssh: one short line
	Code int
}

// Error returns a description of the problem.
func (p *Problem) Error() string {
	switch p.Kind {
	case SSHMissing:
		return fmt.Sprintf(textMissing, p.Said)
	case SSHFailed:
		return fmt.Sprintf(textFailed, saidOrNothing(p.Said))
	case ProgramMissing:
		return textAbsent
	case ProgramTooOld:
		return textOld
	case OtherVersion:
		return textOther
	case ProgramEnded:
		return fmt.Sprintf(textEnded, p.Code, saidOrNothing(p.Said))
	case ForeignOutput:
		return fmt.Sprintf(textNoise, p.Said)
	case ProgramRefuses:
		return fmt.Sprintf(textRefused, p.Said)
	case NoOutput:
	}
	return textSilent
}

// Remedy returns what the operator can do about the problem.
func (p *Problem) Remedy(t Target) string {
	switch p.Kind {
	case SSHMissing:
		return textInstall
	case SSHFailed, NoOutput:
		return fmt.Sprintf(textTry, t.sshCommand())
	case ProgramMissing:
		return fmt.Sprintf(textPlace, Target{User: t.User, Host: t.Host, Port: t.Port, Program: "/opt/parley/bin/parley"})
	case ProgramTooOld, OtherVersion:
		return textUpgrade
	case ForeignOutput:
		return textQuiet
	case ProgramEnded, ProgramRefuses:
	}
	return textLook
}

// saidOrNothing returns the text, or words that say that there was none.
func saidOrNothing(said string) string {
	if said == "" {
		return textSaidNothing
	}
	return said
}

// sshCommand returns the command with which a person connects to the target.
func (t Target) sshCommand() string {
	command := "ssh "
	if t.Port != 0 {
		command += fmt.Sprintf("-p %d ", t.Port)
	}
	return command + t.User + "@" + t.Host
}
