#!/bin/sh
# Turns a message into capital letters. stdin is the text of the message; every line of stdout is streamed to the caller.
tr '[:lower:]' '[:upper:]'
