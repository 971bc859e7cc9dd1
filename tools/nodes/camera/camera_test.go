package camera_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/nodes/camera"
)

const png = "\x89PNG\r\n\x1a\n"

// take runs the tool with a command for sh, and returns the files that it has written.
func take(ctx context.Context, script string, args ...string) (result map[string]any, files map[string][]byte, err error) {
	files = map[string][]byte{}
	tool := camera.New(camera.Config{
		Command: append([]string{"sh", "-c", script, "sh"}, args...),
		Write: func(_ context.Context, _ tools.Call, name string, content []byte) error {
			files[name] = bytes.Clone(content)
			return nil
		},
		Now: func() time.Time { return time.Date(2026, 11, 30, 14, 5, 6, 0, time.UTC) },
	})
	r, err := tool.Run(ctx, tools.Call{Name: camera.Tool, ID: "1", Key: "1", Args: json.RawMessage(`{}`)})
	if err == nil {
		err = json.Unmarshal(r.Content, &result)
	}
	return result, files, err
}

func TestPictureIsStoredAndShown(t *testing.T) {
	t.Parallel()
	r, files, err := take(t.Context(), `printf '\211PNG\r\n\032\n'; echo warming up >&2`)
	if err != nil {
		t.Fatal(err)
	}
	path, _ := r["path"].(string)
	if !strings.HasPrefix(path, "pictures/2026-11-30T14-05-06Z-") || !strings.HasSuffix(path, ".png") || string(files[path]) != png {
		t.Errorf("the files are %q, the result is %v", files, r)
	}
	if r["type"] != "image/png" || r["bytes"] != 8.0 || r["picture_base64"] != "iVBORw0KGgo=" {
		t.Errorf("the result is %v", r)
	}
}

func TestLargePictureIsOnlyStored(t *testing.T) {
	t.Parallel()
	r, files, err := take(t.Context(), `printf '\211PNG\r\n\032\n'; head -c 1000000 /dev/zero`)
	if err != nil {
		t.Fatal(err)
	}
	if _, shown := r["picture_base64"]; shown || r["note"] == nil || len(files[r["path"].(string)]) != 1000008 {
		t.Errorf("the result is %v", r["path"])
	}
}

func TestWhatIsNoPicture(t *testing.T) {
	t.Parallel()
	for script, says := range map[string]string{
		"echo hello":                     "no picture",
		"echo no camera >&2; exit 3":     "no camera",
		"head -c 30000000 /dev/zero":     "20 MB",
		`exec "/there/is/no/such/thing"`: "failed",
	} {
		_, files, err := take(t.Context(), script)
		if known, ok := errors.AsType[*tools.Error](err); !ok || known.Code != tools.ExecutionFailed || !strings.Contains(known.Message, says) || len(files) != 0 {
			t.Errorf("%s: %v, want an error that says %q, and no file", script, err, says)
		}
	}
	tool := camera.New(camera.Config{Command: []string{"/there/is/no/such/thing"}})
	if _, err := tool.Run(t.Context(), tools.Call{Args: json.RawMessage(`{}`)}); err == nil {
		t.Error("a program that there is not has run")
	}
}

// The end of a call ends the command and what it has started.
func TestCancelEndsTheCommand(t *testing.T) {
	t.Parallel()
	held := filepath.Join(t.TempDir(), "held")
	if err := syscall.Mkfifo(held, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := make(chan *os.File, 1)
	go func() { // opening waits until the grandchild has opened it, too
		f, err := os.OpenFile(held, os.O_RDONLY, 0)
		if err != nil {
			t.Error(err)
		}
		began <- f
		cancel()
	}()
	if _, _, err := take(ctx, `(exec sleep 1000 >"$1") & wait`, held); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	f := <-began
	defer f.Close()
	if n, err := f.Read(make([]byte, 1)); n != 0 || err == nil { // the end of the file: nobody has it open
		t.Errorf("read %d bytes, %v", n, err)
	}
}

func TestErrorOfTheWorkspace(t *testing.T) {
	t.Parallel()
	tool := camera.New(camera.Config{Command: []string{"printf", `\211PNG\r\n\032\n`}, Write: func(context.Context, tools.Call, string, []byte) error { return fs.ErrPermission }})
	if _, err := tool.Run(t.Context(), tools.Call{Args: json.RawMessage(`{}`)}); err == nil {
		t.Error("no error")
	}
}
