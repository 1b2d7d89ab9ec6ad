"""Files in and out: read with limits on what strangers' files may do, written whole or not at all."""
