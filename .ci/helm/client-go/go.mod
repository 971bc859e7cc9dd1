// What Helm's renderer needs of k8s.io/client-go where there is no cluster to ask. The real one is a hundred
// packages, and takes as long to compile as all the rest.
module k8s.io/client-go

go 1.26.5
