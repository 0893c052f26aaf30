"""Speed, measured side by side with other libraries; `make bench` writes RESULTS.md."""
