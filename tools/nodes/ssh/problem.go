package ssh

import "fmt"

// A Kind is a kind of Problem.
type Kind int

// The kinds.
const (
	Missing Kind = iota // ssh is not installed here, or can't be started; Said is why
	Failed              // ssh itself has failed; Said is what it has said last
	Absent              // the other end has no such program
	Old                 // the program there doesn't know this way to start it
	Other               // the program there speaks another version
	Ended               // the program there has ended with Code; Said is what it has said last
	Noise               // something else than the program has written first; Said is the beginning
	Silent              // nothing came in time
	Refused             // the program there refuses; Said is why
)

// A Problem says why a target can't be reached.
type Problem struct {
	Kind Kind
	Said string // by the other end, or by ssh: one short line
	Code int
}

// Error says what is wrong.
func (p *Problem) Error() string {
	switch p.Kind {
	case Missing:
		return fmt.Sprintf(textMissing, p.Said)
	case Failed:
		return fmt.Sprintf(textFailed, orNothing(p.Said))
	case Absent:
		return textAbsent
	case Old:
		return textOld
	case Other:
		return textOther
	case Ended:
		return fmt.Sprintf(textEnded, p.Code, orNothing(p.Said))
	case Noise:
		return fmt.Sprintf(textNoise, p.Said)
	case Refused:
		return fmt.Sprintf(textRefused, p.Said)
	case Silent:
	}
	return textSilent
}

// Remedy says what somebody can do about it.
func (p *Problem) Remedy(t Target) string {
	switch p.Kind {
	case Missing:
		return textInstall
	case Failed, Silent:
		return fmt.Sprintf(textTry, t.by())
	case Absent:
		return fmt.Sprintf(textPlace, Target{User: t.User, Host: t.Host, Port: t.Port, Program: "/opt/parley/bin/parley"})
	case Old, Other:
		return textUpgrade
	case Noise:
		return textQuiet
	case Ended, Refused:
	}
	return textLook
}

// orNothing returns what was said, or that it was nothing.
func orNothing(said string) string {
	if said == "" {
		return textSaidNothing
	}
	return said
}

// by returns how a person connects to the target.
func (t Target) by() string {
	command := "ssh "
	if t.Port != 0 {
		command += fmt.Sprintf("-p %d ", t.Port)
	}
	return command + t.User + "@" + t.Host
}
