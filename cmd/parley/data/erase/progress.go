package erase

// A Progress says how far an erasure is.
type Progress struct {
	Step Step `json:"step"`
	Done int  `json:"done"` // how many sessions of the step are done
	Of   int  `json:"of"`   // how many sessions the step has; 0 if the step isn't done session by session
}

// A Step is a step of an erasure. There may be several rounds of all steps.
type Step string

// These are the steps, in their order.
const (
	Mail    Step = "messages" // messages in the bus
	Folders Step = "files"    // workspaces, and files that wait to be sent
	Records Step = "records"  // the records in the book
	Log     Step = "log"      // the sessions' logs
)

// Steps returns all steps in their order.
func Steps() []Step { return []Step{Mail, Folders, Records, Log} }

// report reports the progress, if a caller wants to know it.
func (e *Eraser) report(step Step, done, of int) {
	if e.cfg.Progress != nil {
		e.cfg.Progress(Progress{step, done, of})
	}
}
