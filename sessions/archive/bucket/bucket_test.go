package bucket_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"parley/sessions/archive/bucket"
)

// A server is an S3-compatible server with one bucket, which refuses requests with a status if one is set.
type server struct {
	*httptest.Server
	refuse atomic.Int64
	asked  atomic.Int64
	signed atomic.Bool // whether all requests were signed
}

func newServer(t *testing.T) *server {
	stored := s3mem.New()
	if err := stored.CreateBucket("audit"); err != nil {
		t.Fatal(err)
	}
	fake := gofakes3.New(stored).Server()
	s := &server{}
	s.signed.Store(true)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=access-key/") {
			s.signed.Store(false)
		}
		switch status := int(s.refuse.Load()); status {
		case 0:
			fake.ServeHTTP(w, r)
		case neverAnswers:
			select { // until the client gives up
			case <-r.Context().Done():
			case <-t.Context().Done():
			}
		default:
			w.WriteHeader(status)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// neverAnswers is the status of a server that never answers.
const neverAnswers = 1

func (s *server) bucket(t *testing.T, name, prefix string, wait time.Duration) *bucket.Bucket {
	t.Helper()
	b, err := bucket.New(bucket.Config{
		Endpoint: s.URL, Region: "us-east-1", Bucket: name, Prefix: prefix, AccessKey: "access-key", SecretKey: "very-secret", Wait: wait,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestStoredFilesAreReadBack(t *testing.T) {
	s := newServer(t)
	b, beside := s.bucket(t, "audit", "/bots/one/", time.Minute), s.bucket(t, "audit", "", time.Minute)
	if err := b.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(t.Context(), "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that isn't there: %v", err)
	}
	for _, text := range []string{"hello", strings.Repeat("x", 20<<20)} {
		if err := b.Put(t.Context(), "a", bytes.NewReader([]byte(text)), int64(len(text))); err != nil {
			t.Fatal(err)
		}
		file, err := b.Open(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(file); err != nil || string(got) != text {
			t.Errorf("the file has %d bytes, %v, want %d", len(got), err, len(text))
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
	names, err := b.Names(t.Context())
	if slices.Sort(names); err != nil || !slices.Equal(names, []string{".parley-writable", "a"}) {
		t.Errorf("the names are %q, %v", names, err)
	}
	if names, err := beside.Names(t.Context()); err != nil || slices.Contains(names, "a") {
		t.Errorf("without the prefix they are %q, %v", names, err)
	}
	if !s.signed.Load() {
		t.Error("a request wasn't signed")
	}
}

// A server that refuses requests, breaks off or never answers causes an error, which doesn't contain the key.
func TestServerErrors(t *testing.T) {
	s := newServer(t)
	b := s.bucket(t, "audit", "", 100*time.Millisecond)
	for _, status := range []int{http.StatusForbidden, http.StatusInternalServerError, neverAnswers} {
		s.refuse.Store(int64(status))
		_, opened := b.Open(t.Context(), "a")
		_, listed := b.Names(t.Context())
		for _, err := range []error{b.Check(t.Context()), b.Put(t.Context(), "a", strings.NewReader("x"), 1), opened, listed} {
			if err == nil || errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "very-secret") {
				t.Errorf("with status %d: %v", status, err)
			}
		}
	}
	s.refuse.Store(0)
	none := s.bucket(t, "none", "", time.Minute)
	if names, err := none.Names(t.Context()); err == nil {
		t.Errorf("a bucket that isn't there has %q", names)
	}
	if err := none.Check(t.Context()); err == nil {
		t.Error("a bucket that isn't there can be written to")
	}
}
