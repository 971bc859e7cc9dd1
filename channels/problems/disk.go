package problems

import (
	"context"
	"errors"
	"fmt"
)

// DiskSpace is the free space and the size of a disk, in bytes.
type DiskSpace struct{ Free, Size uint64 }

const (
	minFree = 200 << 20
	maxFree = 1 << 30
)

// lowMark returns the number of free bytes below which a disk is nearly full: a tenth of its size, but at least 200
// MB and at most 1 GB.
func (r DiskSpace) lowMark() uint64 { return min(max(r.Size/10, minFree), maxFree) }

// errFreeSpaceUnknown says that a system does not report how full its disks are.
var errFreeSpaceUnknown = errors.New("this system does not report how full its disks are")

// Disk returns the Source that watches the disk that contains the directory dir. name is what owners are told about
// the directory, and host is its machine; "" means a disk that all processes in a fleet share. room measures the
// free space; nil means DiskSpaceOf.
func Disk(host, name, dir string, room func(dir string) (DiskSpace, error)) Source {
	if room == nil {
		room = DiskSpaceOf
	}
	id, place := "disk/"+host+"/"+name, name
	if host != "" {
		place = fmt.Sprintf("%s on `%s`", name, host)
	}
	return Source{
		ID: id, IsResponsible: func() bool { return true },
		FindConcerns: func(_ context.Context, open map[string]bool) ([]Concern, error) {
			r, err := room(dir)
			if errors.Is(err, errFreeSpaceUnknown) {
				return nil, nil
			}
			if err != nil {
				return nil, fmt.Errorf("look how full the disk of %s is: %w", name, err)
			}
			low := r.lowMark()
			if open[id] {
				low += low / 4 // so that the problem does not keep coming and going
			}
			if r.Free >= low {
				return nil, nil
			}
			return []Concern{{ID: id, Text: fmt.Sprintf(textDiskFull,
				place, formatSize(r.Free), formatSize(r.Size))}}, nil
		},
		EndText: func(string) string { return fmt.Sprintf(textDiskHasRoom, place) },
	}
}

// formatSize returns a size for people, in whole GB or MB.
func formatSize(n uint64) string {
	if n >= 10<<30 {
		return fmt.Sprintf("%d GB", n>>30)
	}
	return fmt.Sprintf("%d MB", n>>20)
}
