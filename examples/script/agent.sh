#!/bin/sh
# Turns a message into capital letters. stdin is the text of the message; every line of stdout is sent on as it comes.
tr '[:lower:]' '[:upper:]'
