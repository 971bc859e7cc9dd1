package config

import (
	"net/url"
	"strings"

	"parley/cmd/parley/config/schema"
)

// Audit says where audit records are stored besides the store, and for how long.
type Audit struct {
	File  string // absolute; "" means none
	Days  int    // how many days records are kept, in the file and in the store
	MaxMB int    // limit for the file and the rotated files together

	Archive   string // where the records of each day are moved: an absolute folder, or s3://BUCKET/PREFIX; "" means nowhere
	Endpoint  string // of the server that has the bucket; "" means Amazon's
	Region    string // "" means that the server is asked
	AccessKey Secret
	SecretKey Secret
}

// bucketScheme begins an archive that is a bucket.
const bucketScheme = "s3://"

// Bucket returns the bucket and the prefix of the names in it; ok is false if the archive is a folder, or if there is
// none.
func (a Audit) Bucket() (bucket, prefix string, ok bool) {
	rest, ok := strings.CutPrefix(a.Archive, bucketScheme)
	bucket, prefix, _ = strings.Cut(rest, "/")
	return bucket, strings.Trim(prefix, "/"), ok
}

// auditSection declares the settings of the audit.
func auditSection() section {
	return section{
		Section: schema.Section{Name: "audit", Settings: []schema.Setting{
			{Key: "file", Kind: schema.Path, Example: `"audit.jsonl"`, Fill: schema.Into(func(a *Audit) any { return &a.File })},
			{Key: "days", Kind: schema.Count, Default: int64(7), Least: 1, Fill: schema.Into(func(a *Audit) any { return &a.Days })},
			{Key: "max_mb", Kind: schema.Count, Default: int64(100), Least: 1, Fill: schema.Into(func(a *Audit) any { return &a.MaxMB })},
			{Key: "archive", Kind: folderOrBucket{}, Example: `"s3://BUCKET/PREFIX"`, Fill: schema.Into(func(a *Audit) any { return &a.Archive })},
			{Key: "endpoint", Kind: schema.URL, Schemes: []string{"https", "http"}, Example: `"https://minio.example.com"`, Fill: schema.Into(func(a *Audit) any { return &a.Endpoint })},
			{Key: "region", Kind: schema.Text, Example: `"eu-central-1"`, Fill: schema.Into(func(a *Audit) any { return &a.Region })},
			{Key: "access_key", Kind: schema.Text, Secret: true, Example: `"${AUDIT_ACCESS_KEY}"`, Fill: schema.Into(func(a *Audit) any { return &a.AccessKey })},
			{Key: "secret_key", Kind: schema.Text, Secret: true, Example: `"${file:/run/secrets/audit}"`, Fill: schema.Into(func(a *Audit) any { return &a.SecretKey })},
		}},
		check: checkArchive,
	}
}

// checkArchive reports a bucket to which nobody could write safely, and settings of a bucket without one.
func checkArchive(l *loader) {
	place := l.Text("audit.archive")
	if place == "" && l.Mentioned("audit.archive") {
		return // the kind of the setting reports what is wrong with it
	}
	if !strings.HasPrefix(place, bucketScheme) {
		for _, key := range []string{"audit.endpoint", "audit.region", "audit.access_key", "audit.secret_key"} {
			if l.Mentioned(key) {
				l.Report(l.At(key), key, "has no effect without a bucket", `write archive = "s3://BUCKET/PREFIX", or remove it`)
			}
		}
		return
	}
	for _, key := range []string{"audit.access_key", "audit.secret_key"} {
		if !l.Mentioned(key) {
			l.Report(l.At("audit.archive"), key, "is missing: nothing can be written to a bucket without it", `write something like `+strings.TrimPrefix(key, "audit.")+` = "${file:PATH}"`)
		}
	}
	endpoint := l.Text("audit.endpoint")
	u, err := url.Parse(endpoint) // the kind of the setting reports an invalid URL
	switch {
	case err == nil && u.Path != "":
		l.Report(l.At("audit.endpoint"), "audit.endpoint", "has a path", "write only https://HOST; the bucket goes in archive")
	case inTheClear(endpoint):
		l.Report(l.At("audit.endpoint"), "audit.endpoint", "without TLS, others could read and change the archive in transit", `write https://, or http:// only for a server on this machine, such as "http://127.0.0.1:9000"`)
	}
}

// folderOrBucket is the kind of a setting whose value is a folder, in which a relative path begins at the configuration
// file's folder, or s3://BUCKET/PREFIX.
type folderOrBucket struct{}

// Decode implements schema.Kind.
func (folderOrBucket) Decode(d *schema.Decoder, v any) (any, *schema.Fault) {
	text, f := d.Text(v)
	if f != nil {
		return nil, f
	}
	rest, isBucket := strings.CutPrefix(text, bucketScheme)
	if !isBucket {
		if strings.Contains(text, "://") {
			return nil, &schema.Fault{Wrong: "is neither a folder nor a bucket", Remedy: `write archive = "FOLDER" or archive = "s3://BUCKET/PREFIX"`}
		}
		return schema.Path.Decode(d, v)
	}
	bucket, prefix, _ := strings.Cut(rest, "/")
	if bucket == "" || strings.ContainsAny(rest, "?#@ ") || strings.Contains("/"+prefix+"/", "/../") {
		return nil, &schema.Fault{Wrong: "doesn't name a bucket", Remedy: d.Example()}
	}
	return text, nil
}

// Show implements schema.Kind.
func (folderOrBucket) Show(v any) any { return v }
