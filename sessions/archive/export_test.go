package archive

import (
	"context"
	"time"
)

// ArchiveNow takes over the archive and archives all days that are over at that time.
func (a *Archiver) ArchiveNow(ctx context.Context, now time.Time) error {
	fence, err := a.Table.takeOver(ctx)
	if err != nil {
		return err
	}
	return a.archiveDays(ctx, fence, now)
}

// ArchiveUnder archives under a fence that Fence has returned.
func (a *Archiver) ArchiveUnder(ctx context.Context, fence int64, now time.Time) error {
	return a.archiveDays(ctx, fence, now)
}

// Fence takes over the archive.
func (a *Archiver) Fence(ctx context.Context) (int64, error) { return a.Table.takeOver(ctx) }

// NextDue returns when the next day is archived.
func NextDue(now time.Time) time.Time { return nextDue(now) }
