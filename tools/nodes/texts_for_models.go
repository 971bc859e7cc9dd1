// This file holds the text that models read from this package.

package nodes

const (
	textWhichTool    = "name the node and the tool that are to be called"
	textNoNode       = "there is no node called %q that you may use: list them first"
	textNoError      = "the call failed, and the node did not say why"
	textInBackground = " With background it becomes a job: the call returns its id at once, the job goes on after this turn, for hours if need be and also while the node is away, and its end is told here by itself. A job reads the node's folder and writes to its own folder jobs/ID there alone, which $JOB_DIR names; job_status, job_output and job_stop look after it."
	textNoUndo       = " What it changes there can't be undone."
	textNotThere     = "%q leads out of the folder on the node %s, or may: give a path relative to that folder"
)
