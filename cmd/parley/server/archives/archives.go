// Package archives moves the audit to the place that the settings name: it opens that place, and is a part of the server.
package archives

import (
	"cmp"
	"time"

	"parley/cmd/parley/config"
	"parley/sessions/archive"
	"parley/sessions/archive/bucket"
	"parley/sessions/archive/folder"
)

const (
	// usualEndpoint is the server of a bucket if the settings name none.
	usualEndpoint = "https://s3.amazonaws.com"
	// answerTime is how long the server of a bucket may take to begin an answer.
	answerTime = 30 * time.Second
)

// Open returns the place that the settings name, or nil if they name none. It makes no request.
func Open(c config.Audit) (archive.Place, error) {
	if c.Archive == "" {
		return nil, nil //nolint:nilnil // no place is configured
	}
	name, prefix, ok := c.Bucket()
	if !ok {
		return folder.New(c.Archive), nil
	}
	return bucket.New(bucket.Config{
		Endpoint: cmp.Or(c.Endpoint, usualEndpoint), Region: c.Region, Bucket: name, Prefix: prefix, AccessKey: string(c.AccessKey), SecretKey: string(c.SecretKey), Wait: answerTime,
	})
}
