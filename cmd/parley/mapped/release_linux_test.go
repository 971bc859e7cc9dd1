package mapped

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

const fileSize = 1 << 20

// mapFile maps a file of this process's own with these rights, and reads all of it.
func mapFile(t *testing.T, link string, rights int) []byte {
	t.Helper()
	f, err := os.Open(link)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mapping, err := unix.Mmap(int(f.Fd()), 0, fileSize, rights, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mapping) })
	if bytes.Count(mapping, []byte{'x'}) != fileSize {
		t.Fatal("the file is not mapped as it is")
	}
	return mapping
}

// resident returns how many KB of a file are mapped into this process.
func resident(t *testing.T, link string) int {
	t.Helper()
	file, err := os.Readlink(link)
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, m := range regexp.MustCompile(regexp.QuoteMeta(file)+`\n(?:[A-Z].*\n)*?Rss: *(\d+) kB`).FindAllSubmatch(smaps, -1) {
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// newFile makes a file, and a link to it.
func newFile(t *testing.T) (link string) {
	t.Helper()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, bytes.Repeat([]byte{'x'}, fileSize), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	return link
}

func TestPagesAreReleasedAndReadAgain(t *testing.T) {
	link, other := newFile(t), newFile(t)
	mapping := mapFile(t, link, unix.PROT_READ)
	mapFile(t, other, unix.PROT_READ)
	if n := resident(t, link); n != fileSize>>10 {
		t.Fatalf("%d KB are mapped before", n)
	}
	if err := release(link); err != nil {
		t.Fatal(err)
	}
	if n := resident(t, link); n != 0 {
		t.Errorf("%d KB are mapped after it", n)
	}
	if n := resident(t, other); n != fileSize>>10 {
		t.Errorf("%d KB of another file are mapped after it", n)
	}
	if bytes.Count(mapping, []byte{'x'}) != fileSize {
		t.Error("it is not what it was")
	}
}

// What was written before it was forbidden to write is in no file.
func TestWhatWasChangedStays(t *testing.T) {
	link := newFile(t)
	mapping := mapFile(t, link, unix.PROT_READ|unix.PROT_WRITE)
	mapping[5000] = 'y'
	for _, rights := range []int{unix.PROT_READ | unix.PROT_WRITE, unix.PROT_READ} {
		if err := unix.Mprotect(mapping, rights); err != nil {
			t.Fatal(err)
		}
		if err := release(link); err != nil {
			t.Fatal(err)
		}
		if mapping[5000] != 'y' {
			t.Error("what was written is lost")
		}
		if n := resident(t, link); n != fileSize>>10 {
			t.Errorf("%d KB are mapped after it", n)
		}
	}
}

func TestTheProgramGoesOnWithoutItsPages(t *testing.T) {
	for range 3 {
		if err := release("/proc/self/exe"); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
	}
}

func TestAFileThatIsNotThereIsTold(t *testing.T) {
	if err := release(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("no error")
	}
}
