package config_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestBadArchives(t *testing.T) {
	const good = "[audit]\narchive = \"s3://audit/one\"\naccess_key = \"${T}\"\nsecret_key = \"${L}\"\n"
	for _, c := range []badCase{
		{"no keys", "[audit]\narchive = \"s3://audit\"\n",
			`2: audit.access_key: is missing: nothing can be written to a bucket without it: write something like access_key = "${file:PATH}"
2: audit.secret_key: is missing: nothing can be written to a bucket without it: write something like secret_key = "${file:PATH}"`},
		{"no bucket", strings.Replace(good, "s3://audit/one", "s3:///one", 1), `2: audit.archive: doesn't name a bucket: write something like archive = "s3://BUCKET/PREFIX"`},
		{"a password", strings.Replace(good, "s3://audit/one", "s3://user:pass@audit/one", 1), `2: audit.archive: doesn't name a bucket: write something like archive = "s3://BUCKET/PREFIX"`},
		{"up", strings.Replace(good, "s3://audit/one", "s3://audit/../one", 1), `2: audit.archive: doesn't name a bucket: write something like archive = "s3://BUCKET/PREFIX"`},
		{"another scheme", "[audit]\narchive = \"gs://audit\"\n", `2: audit.archive: is neither a folder nor a bucket: write archive = "FOLDER" or archive = "s3://BUCKET/PREFIX"`},
		{"no TLS", good + "endpoint = \"http://10.0.0.1:9000\"\n",
			`5: audit.endpoint: without TLS, others could read and change the archive in transit: write https://, or http:// only for a server on this machine, such as "http://127.0.0.1:9000"`},
		{"a path", good + "endpoint = \"https://minio.example.com/audit\"\n", `5: audit.endpoint: has a path: write only https://HOST; the bucket goes in archive`},
		{"keys of a folder", "[audit]\narchive = \"a\"\nsecret_key = \"${L}\"\n", `3: audit.secret_key: has no effect without a bucket: write archive = "s3://BUCKET/PREFIX", or remove it`},
		{"keys of nothing", "[audit]\nregion = \"x\"\n", `2: audit.region: has no effect without a bucket: write archive = "s3://BUCKET/PREFIX", or remove it`},
	} {
		c.run(t)
	}
}

func TestArchives(t *testing.T) {
	for _, endpoint := range []string{"", "endpoint = \"http://127.0.0.1:9000\"\n", "endpoint = \"https://10.0.0.1\"\n"} {
		c, err := try(t, "[audit]\narchive = \"s3://audit/one/two/\"\naccess_key = \"${T}\"\nsecret_key = \"${L}\"\n"+endpoint, vars{"T": "key", "L": "a-token-of-25-characters"})
		if err != nil {
			t.Fatal(err)
		}
		if bucket, prefix, ok := c.Audit.Bucket(); bucket != "audit" || prefix != "one/two" || !ok {
			t.Errorf("the bucket is %q, %q, %v", bucket, prefix, ok)
		}
		var shown strings.Builder
		if err := c.Print(&shown); err != nil || strings.Contains(shown.String(), "25-characters") || !strings.Contains(shown.String(), `secret_key = "***"`) || !strings.Contains(shown.String(), `access_key = "***"`) {
			t.Errorf("shown is %v\n%s", err, &shown)
		}
	}
	c, err := try(t, "[audit]\narchive = \"old\"\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := c.Audit.Bucket(); ok || !filepath.IsAbs(c.Audit.Archive) || filepath.Base(c.Audit.Archive) != "old" {
		t.Errorf("the folder is %q", c.Audit.Archive)
	}
}
