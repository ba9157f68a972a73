module rejoin/helpers

go 1.24
