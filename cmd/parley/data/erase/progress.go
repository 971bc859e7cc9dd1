package erase

// A Progress says what an erasure is doing.
type Progress struct {
	Step Step `json:"step"`
	Done int  `json:"done"` // how many sessions of the step are done
	Of   int  `json:"of"`   // of how many; 0 if the step isn't done session by session
}

// A Step is a step of an erasure. There may be several rounds of all steps.
type Step string

// The steps, in their order.
const (
	Mail    Step = "messages" // the bus
	Folders Step = "files"    // workspaces, and files that wait to be sent
	Records Step = "records"  // the book
	Log     Step = "log"      // the sessions' logs
)

// Steps returns all steps in their order.
func Steps() []Step { return []Step{Mail, Folders, Records, Log} }

// report reports the progress to whoever wants to know it.
func (e *Eraser) report(step Step, done, of int) {
	if e.cfg.Progress != nil {
		e.cfg.Progress(Progress{step, done, of})
	}
}
