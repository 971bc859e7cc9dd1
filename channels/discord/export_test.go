package discord

import "time"

// SetSaveInterval sets how often the cursor is saved.
func (c *Channel) SetSaveInterval(d time.Duration) { c.timing.saveInterval = d }

// SetMaxQueued sets how many messages may wait to be published.
func (c *Channel) SetMaxQueued(n int) { c.maxQueued = n }

// SetHelloTimeout sets how long the gateway may take to say hello.
func (c *Channel) SetHelloTimeout(d time.Duration) { c.timing.helloTimeout = d }

// SetAnswerTimeout sets how long publishing an interaction may take before Discord is told to wait.
func (c *Channel) SetAnswerTimeout(d time.Duration) { c.timing.answerTimeout = d }

// SetOverlap sets how far before a gap history is read again.
func (c *Channel) SetOverlap(d time.Duration) { c.timing.overlap = d }
