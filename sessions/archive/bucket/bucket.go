// Package bucket keeps the files of the archive in a bucket of an S3-compatible server.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// probeName is the name of a small file that shows whether files can be stored. It is replaced each time, because a
	// bucket may allow nobody to delete anything.
	probeName = ".parley-writable"
	probeText = "Parley archives its audit here.\n"
	// maxAttempts is how often a request is sent before it has failed.
	maxAttempts = 3
)

// A Config says where a bucket is, and contains the key for it.
type Config struct {
	Endpoint             string // its URL
	Region               string // "" means that the server is asked
	Bucket, Prefix       string
	AccessKey, SecretKey string
	Wait                 time.Duration // how long the server may take to begin an answer
}

// A Bucket is an archive.Place in a bucket that exists.
type Bucket struct {
	server         *minio.Client
	bucket, prefix string
}

// New returns the Bucket, without asking the server anything.
func New(c Config) (*Bucket, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, errors.New("the endpoint isn't a URL")
	}
	secure := u.Scheme == "https"
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	transport.ResponseHeaderTimeout = c.Wait
	server, err := minio.New(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(c.AccessKey, c.SecretKey, ""), Secure: secure, Transport: transport, Region: c.Region, MaxRetries: maxAttempts,
	})
	if err != nil {
		return nil, fmt.Errorf("use the archive's server: %w", err)
	}
	return &Bucket{server: server, bucket: c.Bucket, prefix: strings.Trim(c.Prefix, "/")}, nil
}

// Put implements archive.Place. A server stores an object whole or not at all.
func (b *Bucket) Put(ctx context.Context, name string, content io.ReadSeeker, size int64) error {
	_, err := b.server.PutObject(ctx, b.bucket, b.key(name), content, size,
		minio.PutObjectOptions{ContentType: "application/gzip", SendContentMd5: true, DisableMultipart: true})
	return wrap("write "+name+" to the bucket "+b.bucket, err)
}

// Open implements archive.Place. If the bucket does not exist, it returns the error for a missing file.
func (b *Bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	object, err := b.server.GetObject(ctx, b.bucket, b.key(name), minio.GetObjectOptions{})
	if err == nil {
		if _, err = object.Stat(); err != nil { // only now the server is asked
			err = errors.Join(err, object.Close())
		}
	}
	if refused, ok := errors.AsType[minio.ErrorResponse](err); ok && refused.StatusCode == http.StatusNotFound {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, wrap("read "+name+" from the bucket "+b.bucket, err)
	}
	return object, nil
}

// Names implements archive.Place.
func (b *Bucket) Names(ctx context.Context) (names []string, err error) {
	prefix := b.prefix
	if prefix != "" {
		prefix += "/"
	}
	for object := range b.server.ListObjectsIter(ctx, b.bucket, minio.ListObjectsOptions{Prefix: prefix}) {
		if object.Err != nil {
			return nil, wrap("list the bucket "+b.bucket, object.Err)
		}
		names = append(names, strings.TrimPrefix(object.Key, prefix))
	}
	return names, nil
}

// Check implements archive.Place.
func (b *Bucket) Check(ctx context.Context) error {
	return b.Put(ctx, probeName, strings.NewReader(probeText), int64(len(probeText)))
}

func (b *Bucket) key(name string) string { return path.Join(b.prefix, name) }

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
